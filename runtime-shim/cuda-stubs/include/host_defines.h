// Stand-in for CUDA's host_defines.h: what qualifies functions for a GPU means nothing to a host compiler.
#pragma once

#if defined(__CUDA__) && defined(__clang__)
// clang reads CUDA: what runs where is an attribute.
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __grid_constant__
#define __launch_bounds__(...)
#elif !defined(__CUDACC__)
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#endif
#ifndef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#endif
#define CUDART_CB
#define CUDARTAPI
#ifndef __align__
#define __align__(bytes) __attribute__((aligned(bytes)))
#endif

// What a template that nothing implements has for a body. clang wants one where a type has no linkage, like
// that of a lambda; without, such a program does not link.
#ifdef __clang__
#define VIRTUAL_CUDA_BODY(value)                                                                             \
  {                                                                                                          \
    return value;                                                                                            \
  }
#else
#define VIRTUAL_CUDA_BODY(value)
#endif
