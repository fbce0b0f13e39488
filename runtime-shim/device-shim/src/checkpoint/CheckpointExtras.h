//===- CheckpointExtras.h - optimizer and scaler in a checkpoint *- C++ -*-===//
//
// What a checkpoint holds in addition to the module: the state of the optimizer, by parameter, and of the
// scaler.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checkpoint/OptimizerState.h"

#include <device_shim/GradScaler.h>

#include <torch/serialize/archive.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace device_shim::detail {

struct CheckpointExtras {
  struct Group {
    double rate = 0;
    std::vector<std::string> parameters;
  };
  std::map<std::string, ParameterState> states; ///< tensors have the parameter's shape
  std::vector<Group> groups;                    ///< of the optimizer; none: it was not saved
  std::optional<GradScaler::State> scaler;
};

/// Beside the module's own entries, which torch::load() reads, and ignores these.
void writeExtras(torch::serialize::OutputArchive &archive, const CheckpointExtras &extras);
/// \throws Error when the file has none.
CheckpointExtras readExtras(torch::serialize::InputArchive &archive, const std::string &path);

} // namespace device_shim::detail
