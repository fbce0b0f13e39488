//===- OptimizerState.h - the state of optimizers by name -------*- C++ -*-===//
//
// The state that LibTorch's optimizers keep per parameter, taken apart by name.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace device_shim::detail {

struct ParameterState {
  std::string kind; ///< "adam", "adamw", "sgd", "rmsprop", "adagrad"
  int64_t step = 0;
  std::map<std::string, at::Tensor> tensors; ///< each of the parameter's shape; undefined ones are left out
};

/// Nothing before the first step. \throws UsageError for another kind of state.
std::optional<ParameterState> stateOf(torch::optim::Optimizer &optimizer, const at::Tensor &parameter);
/// What `optimizer` keeps for `parameter`, made of `state`. What its options need in addition, such as
/// amsgrad, begins at zero. \throws UsageError when it is one of LibTorch's that keeps another kind of state;
/// Error for a kind that is unknown.
std::unique_ptr<torch::optim::OptimizerParamState>
makeState(torch::optim::Optimizer &optimizer, const at::Tensor &parameter, ParameterState state);
/// Null: as before the first step.
void setState(torch::optim::Optimizer &optimizer, const at::Tensor &parameter,
              std::unique_ptr<torch::optim::OptimizerParamState> state);

} // namespace device_shim::detail
