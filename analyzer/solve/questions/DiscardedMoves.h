//===- DiscardedMoves.h - moves whose result is thrown away -----*- C++ -*-===//
//
// A question about facts that needs no solving.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/Types.h"
#include "analyzer/solve/solution/Solution.h"

namespace devicetidy {

/// Calls of Tensor::to and its kin whose result is thrown away.
std::vector<DiscardedMove> findDiscardedMoves(const Program &program, const Types &types,
                                              models::TorchVersion version);

} // namespace devicetidy
