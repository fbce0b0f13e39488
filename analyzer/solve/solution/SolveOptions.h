//===- SolveOptions.h - what a user says about a program --------*- C++ -*-===//
//
// What the solver cannot read in the code: versions, models of the user's, and what shall be answered.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Name.h"
#include "analyzer/models/Distributed.h"

#include <atomic>
#include <memory>
#include <set>

namespace devicetidy {

namespace models {
struct UserModels;
}

struct SolveOptions {
  /// LibTorch version whose device rules apply; 0 means the one the analysed code sees (or 2.6 when it sees
  /// none).
  int torchMajor = 0;
  int torchMinor = 0;
  std::size_t factsBefore = 0; ///< how many facts the other programs of this kind and run have cost
  bool reportLatent = false;   ///< also record what only a caller can tell
  DistributedNames names{};    ///< further ones the user knows of
  std::shared_ptr<const models::UserModels> models{}; ///< what the user says of libraries; null: nothing
  const std::set<Name> *placedIn = nullptr;           ///< files for Solution::placed; null: none
  const std::set<Name> *imported =
      nullptr; ///< files that are read for others alone, which import them; null: none
  const std::atomic<bool> *stop = nullptr; ///< once true, the solution ends early and is of no use
  bool isIncomplete = false; ///< functions of the program were left out, or parts of them, for their errors
};

} // namespace devicetidy
