//===- WrapperClaim.h - one wrapper for each model --------------*- C++ -*-===//
//
// Which wrapper has the parameters of a model. Two would each change what the other relies on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <vector>

namespace device_shim::detail {

enum class Wrapper { dataParallel, sharded, dispatched };

/// While it lives, the parameters of `module` belong to a wrapper. That of a dispatched model allows
/// data-parallel training on top, and two of data-parallel training may share parameters that are frozen when
/// the second one comes; no other goes together with a second one.
class WrapperClaim {
public:
  /// \throws UsageError for a parameter that belongs to another wrapper, or when ShardedDataParallel left the
  /// module without parameters.
  WrapperClaim(const torch::nn::Module &module, Wrapper wrapper);
  ~WrapperClaim();
  WrapperClaim(const WrapperClaim &) = delete;
  WrapperClaim &operator=(const WrapperClaim &) = delete;

private:
  std::vector<at::Tensor> claimed; // kept, so that no other tensor gets an address of these
  Wrapper wrapper;
};

/// Whether ShardedDataParallel has sharded one of these parameters of a module: no gradients come to them,
/// but to optimizer_parameters() alone.
bool anySharded(const std::vector<at::Tensor> &parameters);
/// Whether a wrapper exchanges the gradient of `parameter` between the ranks.
bool isExchanged(const at::Tensor &parameter);
/// An optimizer made of such parameters would train nothing. \throws UsageError
void requireNotSharded(const std::vector<at::Tensor> &ofOptimizer);

} // namespace device_shim::detail
