//===- DataParallelCheckpoint.h - a replicated model in a file --*- C++ -*-===//
//
// A model that every rank holds, in the file of a checkpoint.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <device_shim/Communicator.h>
#include <device_shim/GradScaler.h>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <string>

namespace device_shim::detail {

/// See CheckpointFile.h. Collective.
void saveReplica(const torch::nn::Module &module, Communicator &ranks, const std::string &path,
                 torch::optim::Optimizer *optimizer, const GradScaler *scaler);
void loadReplica(torch::nn::Module &module, Communicator &ranks, const std::string &path,
                 torch::optim::Optimizer *optimizer, GradScaler *scaler);

} // namespace device_shim::detail
