//===- DiscardedMoves.h - moves whose result is thrown away -----*- C++ -*-===//
//
// A question about facts that needs no solving, where the type of the receiver is known; the others were
// noted when they were run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"
#include "analyzer/solve/solution/Solution.h"

namespace devicetidy {

/// Calls of Tensor::to and its kin whose result is thrown away.
std::vector<DiscardedMove> findDiscardedMoves(const Machine &machine);

} // namespace devicetidy
