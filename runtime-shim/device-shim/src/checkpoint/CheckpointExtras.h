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

/// Learning rates go by the number of a group. \throws UsageError when the optimizer has other groups than
/// those that were `saved`; a parameter that was not saved may be in any.
void requireSameGroups(const std::vector<CheckpointExtras::Group> &saved,
                       const std::vector<CheckpointExtras::Group> &own, const std::string &path);
/// Gives the groups of `optimizer` the learning rates of `groups`.
void setRates(torch::optim::Optimizer &optimizer, const std::vector<CheckpointExtras::Group> &groups);

} // namespace device_shim::detail
