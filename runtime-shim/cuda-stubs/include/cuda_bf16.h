// Stand-in for CUDA's cuda_bf16.h: bfloat16 numbers, their conversions and their arithmetic.
#pragma once

#include "cuda_16bit_numbers.h"

struct __nv_bfloat16_raw {
  unsigned short x;
};
struct __nv_bfloat162_raw {
  unsigned short x, y;
};

struct __nv_bfloat16 {
  unsigned short bits;
#ifdef __cplusplus
  VIRTUAL_CUDA_NUMBER_MEMBERS(__nv_bfloat16)
  __host__ __device__ __nv_bfloat16(const __nv_bfloat16_raw &raw) : bits(raw.x) {}
  __host__ __device__ __nv_bfloat16 &operator=(const __nv_bfloat16_raw &raw) {
    return *this = __nv_bfloat16(raw);
  }
  __host__ __device__ operator __nv_bfloat16_raw() const { return __nv_bfloat16_raw{bits}; }
#endif
};
typedef struct __nv_bfloat16 nv_bfloat16;

struct __attribute__((aligned(4))) __nv_bfloat162 {
  struct __nv_bfloat16 x, y;
#ifdef __cplusplus
  __nv_bfloat162() = default;
  __host__ __device__ __nv_bfloat162(const __nv_bfloat16 &x, const __nv_bfloat16 &y) : x(x), y(y) {}
  __host__ __device__ __nv_bfloat162(const __nv_bfloat162_raw &raw)
      : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {}
  __host__ __device__ operator __nv_bfloat162_raw() const { return __nv_bfloat162_raw{x.bits, y.bits}; }
#endif
};
typedef struct __nv_bfloat162 nv_bfloat162;

static inline __host__ __device__ unsigned short __bfloat16_as_ushort(struct __nv_bfloat16 value) {
  return value.bits;
}

// The upper half of a float is the same number.
static inline __host__ __device__ float __bfloat162float(struct __nv_bfloat16 value) {
  unsigned int bits = (unsigned int)value.bits << 16;
  float result;
  memcpy(&result, &bits, sizeof(result));
  return result;
}

// Rounds to the nearest, ties to even; not-a-number stays that.
static inline __host__ __device__ struct __nv_bfloat16 __float2bfloat16(float value) {
  unsigned int bits;
  memcpy(&bits, &value, sizeof(bits));
  struct __nv_bfloat16 result;
  if (value != value)
    result.bits = 0x7FFF;
  else
    result.bits = (unsigned short)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  return result;
}

#ifdef __cplusplus
__host__ __device__ inline __nv_bfloat16 &__nv_bfloat16::operator=(float value) {
  bits = __float2bfloat16(value).bits;
  return *this;
}
__host__ __device__ inline __nv_bfloat16::operator float() const { return __bfloat162float(*this); }

VIRTUAL_CUDA_BOTH short __bfloat16_as_short(__nv_bfloat16 value) { return (short)value.bits; }
VIRTUAL_CUDA_BOTH __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return __nv_bfloat16(__nv_bfloat16_raw{bits});
}
VIRTUAL_CUDA_BOTH __nv_bfloat16 __short_as_bfloat16(short bits) {
  return __ushort_as_bfloat16((unsigned short)bits);
}
VIRTUAL_CUDA_BOTH __nv_bfloat16 __float2bfloat16_rn(float value) { return __float2bfloat16(value); }
VIRTUAL_CUDA_BOTH __nv_bfloat16 __float2bfloat16_rz(float value) { return __float2bfloat16(value); }
VIRTUAL_CUDA_BOTH __nv_bfloat16 __float2bfloat16_rd(float value) { return __float2bfloat16(value); }
VIRTUAL_CUDA_BOTH __nv_bfloat16 __float2bfloat16_ru(float value) { return __float2bfloat16(value); }
VIRTUAL_CUDA_BOTH __nv_bfloat16 __double2bfloat16(double value) { return __float2bfloat16((float)value); }
#define VIRTUAL_CUDA_BFLOAT_PAIR(name, parameters, x, y)                                                     \
  VIRTUAL_CUDA_BOTH __nv_bfloat162 name parameters { return __nv_bfloat162(x, y); }
VIRTUAL_CUDA_BFLOAT_PAIR(__float2bfloat162_rn, (float value), value, value)
VIRTUAL_CUDA_BFLOAT_PAIR(__floats2bfloat162_rn, (float x, float y), x, y)
VIRTUAL_CUDA_BFLOAT_PAIR(__float22bfloat162_rn, (float2 value), value.x, value.y)
VIRTUAL_CUDA_BFLOAT_PAIR(__bfloat162bfloat162, (__nv_bfloat16 value), value, value)
VIRTUAL_CUDA_BFLOAT_PAIR(__halves2bfloat162, (__nv_bfloat16 x, __nv_bfloat16 y), x, y)
VIRTUAL_CUDA_BFLOAT_PAIR(make_bfloat162, (__nv_bfloat16 x, __nv_bfloat16 y), x, y)
VIRTUAL_CUDA_BFLOAT_PAIR(__low2bfloat162, (__nv_bfloat162 value), value.x, value.x)
VIRTUAL_CUDA_BFLOAT_PAIR(__high2bfloat162, (__nv_bfloat162 value), value.y, value.y)
VIRTUAL_CUDA_BFLOAT_PAIR(__lowhigh2highlow, (__nv_bfloat162 value), value.y, value.x)
VIRTUAL_CUDA_BFLOAT_PAIR(__lows2bfloat162, (__nv_bfloat162 a, __nv_bfloat162 b), a.x, b.x)
VIRTUAL_CUDA_BFLOAT_PAIR(__highs2bfloat162, (__nv_bfloat162 a, __nv_bfloat162 b), a.y, b.y)
#undef VIRTUAL_CUDA_BFLOAT_PAIR
VIRTUAL_CUDA_BOTH float2 __bfloat1622float2(__nv_bfloat162 value) { return float2{value.x, value.y}; }
VIRTUAL_CUDA_BOTH __nv_bfloat16 __low2bfloat16(__nv_bfloat162 value) { return value.x; }
VIRTUAL_CUDA_BOTH __nv_bfloat16 __high2bfloat16(__nv_bfloat162 value) { return value.y; }
VIRTUAL_CUDA_BOTH float __low2float(__nv_bfloat162 value) { return value.x; }
VIRTUAL_CUDA_BOTH float __high2float(__nv_bfloat162 value) { return value.y; }
VIRTUAL_CUDA_NUMBER_INTEGERS(__nv_bfloat16, bfloat16)

VIRTUAL_CUDA_NUMBER_FUNCTIONS(__nv_bfloat16)
#ifndef __CUDA_NO_BFLOAT16_OPERATORS__
VIRTUAL_CUDA_NUMBER_OPERATORS(__nv_bfloat16)
#endif
#ifndef __CUDA_NO_BFLOAT162_OPERATORS__
VIRTUAL_CUDA_PAIR_OPERATORS(__nv_bfloat16)
#endif
#endif
