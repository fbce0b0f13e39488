//===- Scopes.h - which names a block of code makes its own -----*- C++ -*-===//
//
// "If a name is bound in a block, it is a local variable of that block, unless declared as nonlocal or
// global" (Python reference, 4.2).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/python/Syntax.h"

#include <functional>
#include <set>
#include <string>

namespace devicetidy::python {

/// Is it a node that has a scope of its own (a function, a lambda, a class, a comprehension)?
bool hasScope(const Node &node);

/// Calls `visit` on every node below `node` that belongs to its block; what has a scope of its own is visited
/// and not entered.
void forEachOfBlock(const Node &node, const std::function<void(const Node &)> &visit);

/// What a block does with names.
struct Scope {
  std::set<std::string> bound; ///< parameters are not among them
  std::set<std::string> declaredGlobal, declaredNonlocal;
  bool yields = false;

  /// Adds what the statement `node` binds.
  void add(const Node &node);
};

/// The names a target of an assignment binds.
void addTargets(const Node &target, std::set<std::string> &names);

} // namespace devicetidy::python
