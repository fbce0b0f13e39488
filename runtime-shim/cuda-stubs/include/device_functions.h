// Stand-in for CUDA's device_functions.h: what code that is for hosts and GPUs alike calls on the GPU, and
// what signatures of kernels' helpers ask for. Bodies for GPUs alone are not read.
#pragma once

#include "vector_types.h"

// CUDA has these outside of std, for hosts too.
#define VIRTUAL_CUDA_MIN_MAX(type, first, second)                                                            \
  __host__ __device__ type min(first a, second b);                                                           \
  __host__ __device__ type max(first a, second b);
VIRTUAL_CUDA_MIN_MAX(int, int, int)
VIRTUAL_CUDA_MIN_MAX(unsigned int, unsigned int, unsigned int)
VIRTUAL_CUDA_MIN_MAX(unsigned int, int, unsigned int)
VIRTUAL_CUDA_MIN_MAX(unsigned int, unsigned int, int)
VIRTUAL_CUDA_MIN_MAX(long, long, long)
VIRTUAL_CUDA_MIN_MAX(unsigned long, unsigned long, unsigned long)
VIRTUAL_CUDA_MIN_MAX(long long, long long, long long)
VIRTUAL_CUDA_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
VIRTUAL_CUDA_MIN_MAX(float, float, float)
VIRTUAL_CUDA_MIN_MAX(double, double, double)
VIRTUAL_CUDA_MIN_MAX(double, float, double)
VIRTUAL_CUDA_MIN_MAX(double, double, float)
#undef VIRTUAL_CUDA_MIN_MAX

__device__ void __syncthreads();
__device__ void __syncwarp(unsigned int mask = 0xffffffff);
__device__ void __threadfence();
__device__ float __expf(float x);
__device__ float __logf(float x);
__device__ float __fdividef(float x, float y);
__device__ float __frcp_rn(float x);
__device__ float __saturatef(float x);
__device__ float rsqrtf(float x);
__device__ double rsqrt(double x);
__device__ int __float2int_rn(float x);
__device__ int __float2int_rd(float x);
__device__ int __float2int_rz(float x);
__device__ int __float_as_int(float x);
__device__ float __int_as_float(int x);
__device__ unsigned int __float_as_uint(float x);
__device__ float __uint_as_float(unsigned int x);
__device__ int __clz(int x);
__device__ int __clzll(long long x);
__device__ int __ffs(int x);
__device__ int __popc(unsigned int x);
__device__ int __popcll(unsigned long long x);
template <typename T> __device__ T __ldg(const T *address);
template <typename T> __device__ T atomicAdd(T *address, T value);
template <typename T> __device__ T atomicMax(T *address, T value);
template <typename T> __device__ T atomicMin(T *address, T value);
template <typename T> __device__ T atomicExch(T *address, T value);
template <typename T> __device__ T atomicCAS(T *address, T compare, T value);
template <typename T> __device__ T __shfl_sync(unsigned int mask, T value, int lane, int width = 32);
template <typename T>
__device__ T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32);
template <typename T> __device__ T __shfl_xor_sync(unsigned int mask, T value, int lane, int width = 32);
