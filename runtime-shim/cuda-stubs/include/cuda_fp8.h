// Stand-in for CUDA's cuda_fp8.h: the storage of numbers of eight bits. Arithmetic on them is for kernels.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;

#ifdef __cplusplus
struct __nv_fp8_e4m3 {
  __nv_fp8_storage_t __x;
  __nv_fp8_e4m3() = default;
  explicit __nv_fp8_e4m3(float value);
  explicit operator float() const;
};
struct __nv_fp8_e5m2 {
  __nv_fp8_storage_t __x;
  __nv_fp8_e5m2() = default;
  explicit __nv_fp8_e5m2(float value);
  explicit operator float() const;
};
struct __nv_fp8x2_e4m3 {
  unsigned short __x;
};
struct __nv_fp8x4_e4m3 {
  unsigned int __x;
};
struct __nv_fp8x2_e5m2 {
  unsigned short __x;
};
struct __nv_fp8x4_e5m2 {
  unsigned int __x;
};
#endif
