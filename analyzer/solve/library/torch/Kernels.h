//===- Kernels.h - functions registered with the dispatcher -----*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// torch::Library::impl(): the function it is given is called with tensors of the device it is registered
/// for. Nothing for other calls. Source: torch/library.h, aten/src/ATen/core/dispatch.
std::optional<Outcomes> modelKernels(Call &call);

} // namespace devicetidy
