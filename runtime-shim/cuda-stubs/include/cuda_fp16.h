// Stand-in for CUDA's cuda_fp16.h: the storage of half precision numbers. Arithmetic on them is for kernels.
#pragma once

#include "host_defines.h"

struct __half_raw {
  unsigned short x;
};

struct __half {
  unsigned short bits;
#ifdef __cplusplus
  __half() = default;
  __half(const __half_raw &raw) : bits(raw.x) {}
  operator __half_raw() const { return __half_raw{bits}; }
#endif
};
typedef struct __half half;

struct __half2 {
  struct __half x, y;
};
typedef struct __half2 half2;
