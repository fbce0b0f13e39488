//===- UnlinkedGradient.h - averaged gradients without a graph --*- C++ -*-===//
//
// The gradient of a backward pass with create_graph = true after the ranks have averaged it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace device_shim::detail {

/// A tensor that shares the memory of `average`, for a parameter's gradient that came with a graph of its
/// own. The average has none, so a loss that uses it would leave out what it was made from: its backward()
/// throws UsageError naming the parameter and `wrapper`.
at::Tensor unlinkedGradient(const at::Tensor &average, const std::string &parameter, const char *wrapper);

} // namespace device_shim::detail
