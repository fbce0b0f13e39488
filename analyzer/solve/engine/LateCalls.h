//===- LateCalls.h - what a program calls and sets by name ------*- C++ -*-===//
//
// Calls that are late bound have no target. What they may lead to is told by the names they use.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <map>
#include <set>
#include <vector>

namespace devicetidy {

/// Adds the field that `fact` of `function` sets, should it be late bound, to `fields`. By a name that is not
/// known it may set any: then its class is added to `classes`.
void addLateWrites(const Function &function, const Fact &fact, std::set<Name> &fields,
                   std::set<Name> &classes);

/// Does a full expression move a module that the object at hand keeps? Nobody takes the result: a module
/// moves itself.
bool movesOwnModule(const std::vector<const Fact *> &expression);

/// What the late-bound calls of a program call: functions and methods by name, and classes, whose methods are
/// used then.
class LateCalls {
public:
  /// Adds the calls of a full expression of a function of `className`.
  void add(const std::vector<const Fact *> &expression, Name className);
  /// Adds the ids of the functions that may be called so, and apart those that methods call on their object.
  void addTo(const Program &program, std::set<Name> &all, std::set<Name> &bySiblings) const;

private:
  std::set<Name> called, made, named;
  std::map<Name, std::set<Name>> ofSelf; ///< what methods call on their own object, with their classes
};

} // namespace devicetidy
