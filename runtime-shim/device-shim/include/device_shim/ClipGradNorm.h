//===- ClipGradNorm.h - gradient clipping -----------------------*- C++ -*-===//
//
// Gradient clipping for models on several devices.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace device_shim {

/// As torch::nn::utils::clip_grad_norm_, which stacks the norms of all gradients and so needs them on one
/// device. Here the norms meet on the host and every gradient is scaled by a number, where it is. Parameters,
/// of any shape, without gradient do not count; one that is listed several times, as a tied one in
/// Module::parameters(), counts and is scaled once, which LibTorch's does not do. `norm_type` is above 0 and
/// may be infinity. Returns the norm before clipping, in the unit of the gradients. As in LibTorch, an
/// infinite norm makes gradients 0 or NaN, and a norm that is NaN makes all of them NaN.
/// `max_norm` is at least 0: 0 clears them.
/// \throws UsageError for another `norm_type` or `max_norm`, a sparse gradient, and parameters of
/// ShardedDataParallel, of whose gradients every rank has a part: it has unscale_and_clip_grads(). Error when
/// `error_if_nonfinite` and the norm is infinite or not a number; gradients are left as they are then.
double clip_grad_norm_(const std::vector<at::Tensor> &parameters, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);

} // namespace device_shim
