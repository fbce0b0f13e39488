//===- Solve.h - where every tensor of a program can live -------*- C++ -*-===//
#pragma once

#include "analyzer/solve/Solution.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace devicetidy {

namespace models {
struct UserModels;
}

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
  bool reportLatent = false;                          ///< also record what only a caller can tell
  DistributedNames names{};                           ///< further ones the user knows of
  std::shared_ptr<const models::UserModels> models{}; ///< what the user says of libraries; null: nothing
  const std::set<Name> *placedIn = nullptr;           ///< files for Solution::placed; null: none
  const std::atomic<bool> *stop = nullptr;            ///< once true, the solution ends early and is of no use
  bool isIncomplete = false; ///< functions of the program were left out, for their errors
};

/// The words that rows of models are made of, sorted; those of whole effects and of what stands for a value.
std::vector<std::string_view> modelWords();
/// May a row use `word`, with arguments (`isCall`) or as a value?
bool isModelWord(std::string_view word, bool isCall);

/// Solves a linked program. Deterministic: equal programs give equal solutions. Never throws on any facts.
Solution solve(const Program &program, const SolveOptions &options = {});

} // namespace devicetidy
