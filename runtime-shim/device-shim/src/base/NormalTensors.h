//===- NormalTensors.h - tensors outside inference mode ---------*- C++ -*-===//
//
// Tensors that outlive the mode in which they are made.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

namespace device_shim::detail {

/// As at::NoGradGuard, and tensors that are made while it lives are normal ones, also where the caller is in
/// c10::InferenceMode: training could not write into those of that mode later, nor could other threads.
class NormalTensors {
  c10::InferenceMode off{false};
  at::NoGradGuard noGrad; // InferenceMode switches gradients on when it ends
};

/// A normal tensor with the memory of `tensor`, which may be an inference tensor: other threads may write
/// into it. Not to be given to the user: autograd does not see what is written.
at::Tensor writable(const at::Tensor &tensor);

} // namespace device_shim::detail
