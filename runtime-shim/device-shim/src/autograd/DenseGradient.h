//===- DenseGradient.h - refuses gradients of another layout ----*- C++ -*-===//
//
// Gradients that are refused, because they have another layout than their parameter.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace device_shim::detail {

/// Embedding layers with sparse(true) give their weight a sparse gradient, which has no place in a vector of
/// gradients.
/// \param user what wants it dense. \param name of the parameter, "" where it is not known.
/// \throws UsageError unless the gradient is undefined or dense.
void requireDenseGradient(const at::Tensor &gradient, const std::string &name, const char *user);

} // namespace device_shim::detail
