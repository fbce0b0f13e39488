//===- Ranks.h - how many dimensions the result of an operation has -*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// Number of dimensions that the size argument of a call gives: an empty list is a scalar.
int rankOfSizes(const Call &call);
/// Number of elements a literal size argument asks for, -1 when it is not known.
std::int64_t countOfSizes(const Call &call);
/// Number of dimensions of the result of `op` on `uses`: a number, someRank or unknownRank.
int resultRank(const Call &call, const models::Op &op, const std::vector<TensorUse> &uses);

} // namespace devicetidy
