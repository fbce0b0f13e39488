//===- TensorDigest.h - compares tensors of ranks ---------------*- C++ -*-===//
//
// Whether ranks hold the same tensors, without sending them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace device_shim::detail {

/// A line of names and sums of bits, which is the same on all machines for the same tensors. Tensors are on
/// the host; another order of their elements is not seen.
std::string digestOf(const std::map<std::string, at::Tensor> &tensors);

} // namespace device_shim::detail
