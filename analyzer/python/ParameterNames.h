//===- ParameterNames.h - what parameters of a name are ---------*- C++ -*-===//
#pragma once

#include "analyzer/python/Modules.h"

#include <set>
#include <string>
#include <vector>

namespace devicetidy::python {

/// The functions and methods that `body` defines, those of its classes included.
std::vector<Node> functionsIn(const std::vector<Node> &body);

/// The names of parameters that one of `functions` says or uses as only a tensor is used, and none as
/// anything else: what is called so elsewhere in the same code is one, too. Constructors are not asked: what
/// they are given, they may make a tensor of.
std::set<std::string> tensorsByName(const Module &module, const std::vector<Node> &functions);

/// The names that `forward`, a method of a module, computes with, and uses as no number, text or dictionary.
std::set<std::string> tensorsOfForward(const Module &module, const Node &forward);

} // namespace devicetidy::python
