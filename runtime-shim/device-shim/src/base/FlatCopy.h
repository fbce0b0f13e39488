//===- FlatCopy.h - many tensors as one vector ------------------*- C++ -*-===//
//
// Many tensors as one vector.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace device_shim::detail {

/// Groups of tensors of one type and device of about `bytes` each; the order within a kind is kept.
std::vector<std::vector<at::Tensor>> chunksOfOneKind(const std::vector<at::Tensor> &tensors, int64_t bytes);

/// A vector of all elements.
at::Tensor flattened(const std::vector<at::Tensor> &tensors);

/// Overwrites `tensors` with the elements of `flat`.
void copyBack(const at::Tensor &flat, const std::vector<at::Tensor> &tensors);

} // namespace device_shim::detail
