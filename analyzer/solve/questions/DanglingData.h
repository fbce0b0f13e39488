//===- DanglingData.h - pointers into tensors that are gone -----*- C++ -*-===//
#pragma once

#include "analyzer/facts/Program.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/Types.h"
#include "analyzer/solve/solution/Solution.h"

#include <vector>

namespace devicetidy {

/// Pointers from `data_ptr()` of a temporary tensor with memory of its own, kept beyond the full expression.
std::vector<DanglingData> findDanglingData(const Program &program, const Types &types,
                                           models::TorchVersion version);

} // namespace devicetidy
