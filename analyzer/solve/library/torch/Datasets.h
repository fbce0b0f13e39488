//===- Datasets.h - what loaders of torch::data hand out --------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// make_data_loader and methods of loaders, their iterators and datasets.
std::optional<Outcomes> modelDatasets(Call &call);
/// Datasets and transforms of torch::data.
std::optional<Value> constructDataset(Call &call, Name type, const std::vector<Value> &args);

} // namespace devicetidy
