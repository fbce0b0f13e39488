//===- Solve.h - where every tensor of a program can live -------*- C++ -*-===//
//
// The solver's interface: a linked program in, the answers that checks ask for out.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/solution/Solution.h"
#include "analyzer/solve/solution/SolveOptions.h"

#include <string_view>
#include <vector>

namespace devicetidy {

/// The words that rows of models are made of, sorted; those of whole effects and of what stands for a value.
std::vector<std::string_view> modelWords();
/// May a row use `word`, with arguments (`isCall`) or as a value?
bool isModelWord(std::string_view word, bool isCall);

/// Solves a linked program. Deterministic: equal programs give equal solutions. Never throws on any facts.
Solution solve(const Program &program, const SolveOptions &options = {});

} // namespace devicetidy
