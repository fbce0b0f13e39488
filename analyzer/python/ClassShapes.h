//===- ClassShapes.h - which class has what is asked of a value --*- C++ -*-===//
#pragma once

#include "analyzer/python/Syntax.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::python {

/// The attributes and methods of the classes that a module defines.
class ClassShapes {
public:
  ClassShapes() = default;
  explicit ClassShapes(const std::vector<Node> &body);
  /// The one class whose objects have all of `used`, or the one that the others with them derive from; empty
  /// where there is none, or where other values have them, too.
  std::string classWith(const std::set<std::string> &used) const;

private:
  const std::set<std::string> &membersOf(const std::string &name);
  bool derives(const std::string &name, const std::string &base) const;

  std::map<std::string, Node> definitions;
  std::map<std::string, std::vector<std::string>> bases; ///< those that the module defines
  std::map<std::string, std::set<std::string>> members;  ///< those of the bases included
};

/// The attributes that a function asks its parameters for, by parameter.
std::map<std::string, std::set<std::string>> attributesAsked(const Node &function);

} // namespace devicetidy::python
