// Stand-in for CUDA's mma.h: products of matrices in kernels, by name.
#pragma once

namespace nvcuda {
namespace wmma {}
} // namespace nvcuda
