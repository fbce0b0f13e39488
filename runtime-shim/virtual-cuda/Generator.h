//===- Generator.h - random number generators -------------------*- C++ -*-===//
//
// Random number generators of the virtual devices: a CPU engine that presents itself as cuda:i.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Export.h"

#include <ATen/core/Generator.h>

namespace vcuda {

const at::Generator &defaultGenerator(int device);
/// Of the current device for -1.
VCUDA_EXPORT at::Generator createGenerator(int device);

/// The CPU generator behind a virtual one, started for one operator. Throws CUDA's text for a generator of
/// another device type, and for a virtual one when all tensors of the call are `onCpu`.
at::Generator hostGenerator(const at::Generator &generator, bool onCpu);

} // namespace vcuda
