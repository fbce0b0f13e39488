//===- HookFunctions.h - functions that a library calls ---------*- C++ -*-===//
#pragma once

#include "analyzer/python/Syntax.h"

#include <set>
#include <string>
#include <vector>

namespace devicetidy::python {

/// The functions that a module registers as hooks: a library calls them, whatever their names say, with what
/// a layer or a gradient is.
class HookFunctions {
public:
  HookFunctions() = default;
  explicit HookFunctions(const std::vector<Node> &body);
  bool has(const Node &function) const;
  /// Its parameter that is a tensor: the output of the layer, the gradient. Empty where it is no hook, or
  /// asks what it is given.
  std::string tensorOf(const Node &function) const;

private:
  void findRegistered(const Node &node);
  void findMade(const Node &node);
  void add(const Node &written);

  std::set<std::string> names, makers; ///< of hooks, and of functions that give them
  std::vector<Node> lambdas;
};

} // namespace devicetidy::python
