// Stand-in for CUDA's cuda_bf16.h: bfloat16 numbers and their conversions. Arithmetic on them is for kernels.
#pragma once

#include "host_defines.h"

#include <string.h>

struct __nv_bfloat16_raw {
  unsigned short x;
};

struct __nv_bfloat16 {
  unsigned short bits;
#ifdef __cplusplus
  __nv_bfloat16() = default;
  __nv_bfloat16(const __nv_bfloat16_raw &raw) : bits(raw.x) {}
  operator __nv_bfloat16_raw() const { return __nv_bfloat16_raw{bits}; }
#endif
};
typedef struct __nv_bfloat16 nv_bfloat16;

struct __nv_bfloat162 {
  struct __nv_bfloat16 x, y;
};
typedef struct __nv_bfloat162 nv_bfloat162;

static inline unsigned short __bfloat16_as_ushort(struct __nv_bfloat16 value) { return value.bits; }

// The upper half of a float is the same number.
static inline float __bfloat162float(struct __nv_bfloat16 value) {
  unsigned int bits = (unsigned int)value.bits << 16;
  float result;
  memcpy(&result, &bits, sizeof(result));
  return result;
}

// Rounds to the nearest, ties to even; not-a-number stays that.
static inline struct __nv_bfloat16 __float2bfloat16(float value) {
  unsigned int bits;
  memcpy(&bits, &value, sizeof(bits));
  struct __nv_bfloat16 result;
  if (value != value)
    result.bits = 0x7FFF;
  else
    result.bits = (unsigned short)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  return result;
}
