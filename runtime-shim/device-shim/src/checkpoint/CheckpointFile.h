//===- CheckpointFile.h - a model and its training in one file --*- C++ -*-===//
//
// The file of a checkpoint, the same for all wrappers and any number of ranks: its root is what torch::save()
// writes for the module, and the rest is in an archive of its own in it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checkpoint/CheckpointExtras.h"
#include "checkpoint/ModuleArchive.h"

#include <torch/nn/module.h>

#include <string>

namespace device_shim::detail {

/// Writes the module with `values`, see writeModule(). \throws Error, see writeArchive().
void writeCheckpoint(const torch::nn::Module &root, const Named &values, const CheckpointExtras &extras,
                     const std::string &path);

struct CheckpointFile {
  ModuleValues values;
  CheckpointExtras extras; ///< where they were wanted
  std::string digest;      ///< of the parameters
};
/// What is wanted besides the module.
struct WantedExtras {
  bool optimizer = false, scaler = false;
};
/// \throws Error naming `rank` when it cannot read the file, and when the file lacks what is wanted; see
/// readArchive(), readModule().
CheckpointFile readCheckpoint(const torch::nn::Module &root, const std::string &path, WantedExtras wanted,
                              int rank);

} // namespace device_shim::detail
