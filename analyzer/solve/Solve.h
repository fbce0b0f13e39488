//===- Solve.h - where every tensor of a program can live -------*- C++ -*-===//
#pragma once

#include "analyzer/solve/Solution.h"

#include <atomic>
#include <set>
#include <string>

namespace devicetidy {

/// Functions and classes that do what some of distributed.csv do; qualified names, or their last parts.
struct DistributedNames {
  std::set<std::string, std::less<>> loaders;      ///< load a model and take a placement map
  std::set<std::string, std::less<>> initialisers; ///< initialise distributed training
  std::set<std::string, std::less<>> launchers;    ///< start the command they are given
};

struct SolveOptions {
  /// LibTorch version whose device rules apply; 0 means the one the analysed code sees (or 2.6 when it sees
  /// none).
  int torchMajor = 0;
  int torchMinor = 0;
  bool reportLatent = false;                ///< also record what only a caller can tell
  DistributedNames names{};                 ///< further ones the user knows of
  const std::set<Name> *placedIn = nullptr; ///< files for Solution::placed; null: none
  const std::atomic<bool> *stop = nullptr;  ///< once true, the solution ends early and is of no use
  bool isIncomplete = false;                ///< functions of the program were left out, for their errors
};

/// Solves a linked program. Deterministic: equal programs give equal solutions. Never throws on any facts.
Solution solve(const Program &program, const SolveOptions &options = {});

} // namespace devicetidy
