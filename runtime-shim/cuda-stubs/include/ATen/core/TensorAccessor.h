// In front of LibTorch's ATen/core/TensorAccessor.h, which shows RestrictPtrTraits to CUDA's compiler only.
#pragma once

#include <c10/macros/Macros.h>

#include_next <ATen/core/TensorAccessor.h>

#if defined(__CUDA__) && !defined(__CUDACC__)
namespace at {
template <typename T> struct RestrictPtrTraits {
  typedef T *__restrict__ PtrType;
};
} // namespace at
#endif
