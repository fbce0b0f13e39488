//===- ShardedCheckpoint.h - a sharded model in one file --------*- C++ -*-===//
//
// A sharded model in one file that does not depend on the number of ranks.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "sharded/ShardedModel.h"

#include <string>

namespace device_shim::detail {

/// See CheckpointFile.h.
void saveCheckpoint(ShardedModel &model, const std::string &path, torch::optim::Optimizer *optimizer,
                    const GradScaler *scaler);
void loadCheckpoint(ShardedModel &model, const std::string &path, torch::optim::Optimizer *optimizer,
                    GradScaler *scaler);

/// Adapters alone, in the format of device_shim::save_adapters().
void saveAdapters(ShardedModel &model, const std::string &path);

} // namespace device_shim::detail
