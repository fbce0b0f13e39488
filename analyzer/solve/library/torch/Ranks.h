//===- Ranks.h - how many dimensions the result of an operation has -*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// Number of dimensions of the result of `op` on `uses`: a number, someRank or unknownRank.
int resultRank(const Call &call, const models::Op &op, const std::vector<TensorUse> &uses);
/// Number of elements of what the factory `op` makes, -1 when it is not known.
std::int64_t resultCount(const Call &call, const models::Op &op);

} // namespace devicetidy
