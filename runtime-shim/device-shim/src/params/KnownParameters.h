//===- KnownParameters.h - parameters when a wrapper was made ---*- C++ -*-===//
//
// The parameters that a module had when a wrapper was made for it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <torch/nn/module.h>

#include <unordered_set>

namespace device_shim::detail {

class KnownParameters {
public:
  /// Keeps no reference to `module` or its parameters; a WrapperClaim keeps these alive.
  explicit KnownParameters(const torch::nn::Module &module);

  /// What was added or replaced since would be trained by every rank on its own. To be called where gradients
  /// are enabled: an evaluation may use what it likes.
  /// \throws UsageError naming it and `wrapper`, for a parameter of `module` that requires a gradient, was
  /// not there, and belongs to no other wrapper that exchanges gradients.
  void requireNoneAdded(const torch::nn::Module &module, const char *wrapper) const;

private:
  std::unordered_set<const void *> known;
};

} // namespace device_shim::detail
