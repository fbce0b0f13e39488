//===- HostAlias.h - device tensors as the host sees them -------*- C++ -*-===//
//
// The bytes of a device tensor as a CPU tensor, for libraries that work on the host, such as Gloo.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Export.h"

#include <ATen/core/Tensor.h>

namespace vcuda {

/// A CPU tensor that shares the bytes of a dense tensor of a virtual device. It must not outlive the tensor.
VCUDA_EXPORT at::Tensor hostAlias(const at::Tensor &tensor);

} // namespace vcuda
