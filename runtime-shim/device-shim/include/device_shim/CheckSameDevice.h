//===- CheckSameDevice.h - names tensors on different devices ---*- C++ -*-===//
//
// Saying where tensors are before an operation fails on it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace device_shim {

struct NamedTensor {
  std::string name; ///< for the message
  at::Tensor tensor;
};

/// Compares the devices of tensors of any shapes and types. `where` begins the message.
/// \throws DeviceError when the tensors are not all on one device; it lists each with its device and shape.
/// Undefined ones do not count. 0-dimensional CPU tensors do, which some operators would accept.
///
///   check_same_device("the loss", {{"logits", logits}, {"labels", labels}});
void check_same_device(const std::string &where, const std::vector<NamedTensor> &tensors);
void check_same_device(const std::vector<NamedTensor> &tensors);

/// \throws DeviceError when one of them is not on `device`; a device without number, such as torch::kCUDA,
/// matches any of its type. Undefined tensors do not count.
void check_on_device(const std::string &where, at::Device device, const std::vector<NamedTensor> &tensors);

} // namespace device_shim
