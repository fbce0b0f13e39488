//===- Ranges.h - range-based for loops -------------------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// The test and the step of a range-based for: one row per element, as far as they are run one by one.
Outcomes rangeCall(Call &call);

} // namespace devicetidy
