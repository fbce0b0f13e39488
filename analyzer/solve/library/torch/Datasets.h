//===- Datasets.h - what loaders of torch::data hand out --------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// A batch taken from a loader, with this place in its tensors' histories.
Value takenBatch(Call &call, const Value &batch);

} // namespace devicetidy
