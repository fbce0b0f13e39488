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
#include <vector>

namespace devicetidy::python {

/// Is it a node that has a scope of its own (a function, a lambda, a class, a comprehension)?
bool hasScope(const Node &node);

/// Is it a statement that imports?
bool isImport(const Node &node);

/// The names that an import binds, each with what follows `import` in its place.
std::vector<std::pair<std::string, Node>> importedNames(const Node &statement);

/// Calls `visit` on every node below `node` that belongs to its block; what has a scope of its own is visited
/// and not entered.
void forEachOfBlock(const Node &node, const std::function<void(const Node &)> &visit);

/// What a block does with names.
struct Scope {
  std::set<std::string> bound; ///< parameters are not among them, nor what only an import binds
  std::vector<Node> imports;   ///< its import statements
  std::set<std::string> declaredGlobal, declaredNonlocal;
  bool yields = false;

  /// Adds what the statement `node` binds.
  void add(const Node &node);
};

/// The names below `node` that are read or written there.
void addNames(const Node &node, std::set<std::string> &names);

/// The names a target of an assignment binds.
void addTargets(const Node &target, std::set<std::string> &names);

} // namespace devicetidy::python
