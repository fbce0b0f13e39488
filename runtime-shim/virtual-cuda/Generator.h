// Random number generators of the virtual devices: a CPU engine that presents itself as cuda:i.
#pragma once

#include <ATen/core/Generator.h>

namespace vcuda {

const at::Generator &defaultGenerator(int device);
at::Generator createGenerator(int device);

// The CPU generator behind a virtual one; throws CUDA's text for a generator of another device type.
at::Generator hostGenerator(const at::Generator &generator);

} // namespace vcuda
