//===- GlobalStates.h - functions that share globals ------------*- C++ -*-===//
//
// A C interface keeps its objects in globals: one function makes them, others change and use them. Such
// functions belong together as the methods of a class do.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Types.h"

#include <functional>
#include <set>
#include <vector>

namespace devicetidy {

struct GlobalState {
  std::vector<Name> globals; ///< by identifier: variables that hold tensors, modules or devices
  std::vector<const Function *> functions;
};

/// The groups of `functions` that share such globals, in order. `flags` are those of static locals;
/// `mentioned` gives the names of the fields and globals that a function comes to, itself or in what it
/// calls.
std::vector<GlobalState>
globalStates(const Types &types, const std::set<Name> &flags, const std::vector<const Function *> &functions,
             const std::function<const std::set<Name> &(const Function &)> &mentioned);

} // namespace devicetidy
