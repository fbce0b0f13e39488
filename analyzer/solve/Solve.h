//===- Solve.h - where every tensor of a program can live -------*- C++ -*-===//
#pragma once

#include "analyzer/solve/Solution.h"

namespace devicetidy {

struct SolveOptions {
  /// LibTorch version whose device rules apply; 0 means the one the analysed code sees (or 2.6 when it sees
  /// none).
  int torchMajor = 0;
  int torchMinor = 0;
  bool reportLatent = false; ///< also record what only a caller can tell
  bool isIncomplete = false; ///< functions of the program were left out, for their errors
};

/// Solves a linked program. Deterministic: equal programs give equal solutions. Never throws on any facts.
Solution solve(const Program &program, const SolveOptions &options = {});

} // namespace devicetidy
