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
  /// Ids of functions of the program.
  struct Functions {
    std::set<Name> called;      ///< those that may be called
    std::set<Name> bySiblings;  ///< those that methods call on their object
    std::set<Name> whileMaking; ///< methods that constructors call, and nothing else
  };
  /// Adds the calls of a full expression of `function`.
  void add(const std::vector<const Fact *> &expression, const Function &function);
  Functions functions(const Program &program) const;

private:
  std::set<Name> called, made, named, afterMaking, whileMaking;
  std::map<Name, std::set<Name>> ofSelf; ///< what methods call on their own object, with their classes
};

} // namespace devicetidy
