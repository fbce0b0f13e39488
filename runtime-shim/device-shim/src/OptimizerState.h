// The state that LibTorch's optimizers keep per parameter, taken apart by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace torch::optim {
class Optimizer;
}

namespace device_shim::detail {

struct ParameterState {
  std::string kind; ///< "adam", "adamw", "sgd", "rmsprop", "adagrad"
  int64_t step = 0;
  std::map<std::string, at::Tensor> tensors; ///< each of the parameter's shape; undefined ones are left out
};

/// Nothing before the first step. \throws UsageError for another kind of state.
std::optional<ParameterState> stateOf(torch::optim::Optimizer &optimizer, const at::Tensor &parameter);
/// \throws UsageError when `optimizer` is one of LibTorch's that keeps another kind of state.
void setState(torch::optim::Optimizer &optimizer, const at::Tensor &parameter, const ParameterState &state);
/// As before the first step.
void forgetState(torch::optim::Optimizer &optimizer, const at::Tensor &parameter);

} // namespace device_shim::detail
