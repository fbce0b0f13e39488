//===- LaggingParameters.h - parameters updated on request ------*- C++ -*-===//
//
// Parameters of modules whose values are updated from those of an optimizer on request.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <vector>

namespace device_shim::detail {

/// Those of one module, while it lives.
class LaggingParameters {
public:
  explicit LaggingParameters(const torch::nn::Module &module);
  ~LaggingParameters();
  LaggingParameters(const LaggingParameters &) = delete;
  LaggingParameters &operator=(const LaggingParameters &) = delete;

  /// Whether an optimizer may have made a step since they followed.
  void set(bool lag);

private:
  friend bool lags(const at::Tensor &parameter);

  std::vector<at::Tensor> all;
  bool now = false;
};

/// Whether the values of this parameter may be those before the last step.
bool lags(const at::Tensor &parameter);

} // namespace device_shim::detail
