//===- Tensors.h - applying operator rules to a call ------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// Tensors among the operands from `from` on, those in lists, tuples and optionals included.
std::vector<TensorUse> tensorUses(Call &call, std::size_t from);

/// Applies the rule of `op` to `uses`: reports what must not meet, and gives the result. `operation` is its
/// name for the user ("add", "Linear::forward").
Outcomes applyOp(Call &call, const models::Op &op, const std::vector<TensorUse> &uses,
                 const std::string &operation);

/// Lengths that have to be on the CPU, as what others must be with.
TensorUse lengthsOnCpu();

} // namespace devicetidy
