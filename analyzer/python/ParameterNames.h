//===- ParameterNames.h - what parameters of a name are ---------*- C++ -*-===//
#pragma once

#include "analyzer/python/Modules.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace devicetidy::python {

/// Before the type of what a container holds, or a dictionary.
constexpr std::string_view holdsType = "python::holds::";

/// The functions and methods that `body` defines, those of its classes included.
std::vector<Node> functionsIn(const std::vector<Node> &body);

/// What functions say of the names of their parameters.
struct ParameterNames {
  /// One function says or uses them as only a tensor is used, and none as anything else: what is called so
  /// elsewhere in the same code is one, too. What a constructor is given, it may make a tensor of.
  std::set<std::string> tensors;
  /// Numbers, texts, dictionaries, functions: in one function at least, or in one constructor.
  std::set<std::string> others, ofConstructors;
  /// The members that are joined as lists of tensors: what is appended to them is one.
  std::set<std::string> joined;
  /// What annotations say that they hold, all of them the same: a dictionary of tensors.
  std::map<std::string, Name> containers;
};
ParameterNames parameterNames(const Module &module, const std::vector<Node> &functions);
/// The names that a function computes with as tensors are: with what is no constant.
std::set<std::string> computedWith(const Node &function);
/// The names that a function asks whether they are None, which everything may be asked.
std::set<std::string> comparedWithNone(const Node &function);
/// The names that a function appends to one of `members`.
std::set<std::string> appendedTo(const Node &function, const std::set<std::string> &members);

} // namespace devicetidy::python
