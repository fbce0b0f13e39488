//===- ModelAgreement.h - compares the models of all ranks ------*- C++ -*-===//
//
// Whether all ranks built the same model.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "params/DistinctParameters.h"

#include <device_shim/Communicator.h>

#include <torch/nn/module.h>

#include <string>
#include <vector>

namespace device_shim::detail {

/// Compares names, shapes and types of parameters and buffers, and which parameters are tied, with those of
/// rank 0, on all ranks at once; and `options`, a line for each that decides which messages are sent.
/// \throws UsageError on every rank, naming the first difference where there is one.
void requireSameModel(const torch::nn::Module &module, const std::string &options, Communicator &ranks);

/// Parameters on another device type than this rank's, or all on another rank's device.
/// \throws DeviceError
void requireOnDevice(const torch::nn::Module &module, const Communicator &ranks, const char *wrapper);

/// Hooks that average gradients are made when a model is wrapped: a parameter that was frozen then and is no
/// longer would be trained by every rank on its own. \throws UsageError naming it and `wrapper`.
void requireStillFrozen(const std::vector<DistinctParameter> &frozen, const char *wrapper);

/// Gives every rank the parameters and buffers of rank 0.
void broadcastModel(const torch::nn::Module &module, Communicator &ranks);

} // namespace device_shim::detail
