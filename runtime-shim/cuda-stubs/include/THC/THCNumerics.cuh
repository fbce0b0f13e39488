// Stand-in for THC/THCNumerics.cuh of PyTorch before 1.11: what kernels ask of numbers.
#pragma once

#include "THC.h"

#include <ATen/cuda/NumericLimits.cuh>

#define VIRTUAL_THC_COMPARISON(name, op)                                                                     \
  static inline __host__ __device__ bool name(T a, T b) { return a op b; }
#define VIRTUAL_THC_OPERATION(name, op)                                                                      \
  static inline __host__ __device__ T name(T a, T b) { return a op b; }
#define VIRTUAL_THC_FUNCTION(name)                                                                           \
  template <typename... Arguments> static __host__ __device__ T name(Arguments...);
template <typename T> struct THCNumerics {
  VIRTUAL_THC_COMPARISON(lt, <)
  VIRTUAL_THC_COMPARISON(le, <=)
  VIRTUAL_THC_COMPARISON(gt, >)
  VIRTUAL_THC_COMPARISON(ge, >=)
  VIRTUAL_THC_COMPARISON(eq, ==)
  VIRTUAL_THC_COMPARISON(ne, !=)
  VIRTUAL_THC_OPERATION(add, +)
  VIRTUAL_THC_OPERATION(sub, -)
  VIRTUAL_THC_OPERATION(mul, *)
  VIRTUAL_THC_OPERATION(div, /)
  VIRTUAL_THC_FUNCTION(min)
  VIRTUAL_THC_FUNCTION(max)
  VIRTUAL_THC_FUNCTION(exp)
  VIRTUAL_THC_FUNCTION(log)
  VIRTUAL_THC_FUNCTION(abs)
  VIRTUAL_THC_FUNCTION(sqrt)
  VIRTUAL_THC_FUNCTION(pow)
  VIRTUAL_THC_FUNCTION(neg)
};
#undef VIRTUAL_THC_COMPARISON
#undef VIRTUAL_THC_OPERATION
#undef VIRTUAL_THC_FUNCTION

template <typename T, typename To = T> struct ScalarConvert {
  static __host__ __device__ To to(const T value) { return static_cast<To>(value); }
};
