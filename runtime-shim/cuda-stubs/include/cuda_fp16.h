// Stand-in for CUDA's cuda_fp16.h: half precision numbers, their conversions and their arithmetic.
#pragma once

#include "cuda_16bit_numbers.h"

struct __half_raw {
  unsigned short x;
};
struct __half2_raw {
  unsigned short x, y;
};

struct __half {
  unsigned short bits;
#ifdef __cplusplus
  VIRTUAL_CUDA_NUMBER_MEMBERS(__half)
  __host__ __device__ __half(const __half_raw &raw) : bits(raw.x) {}
  __host__ __device__ __half &operator=(const __half_raw &raw) { return *this = __half(raw); }
  __host__ __device__ operator __half_raw() const { return __half_raw{bits}; }
#endif
};
typedef struct __half half;
typedef struct __half __nv_half;
typedef struct __half nv_half;

struct __attribute__((aligned(4))) __half2 {
  struct __half x, y;
#ifdef __cplusplus
  __half2() = default;
  __host__ __device__ __half2(const __half &x, const __half &y) : x(x), y(y) {}
  __host__ __device__ __half2(const __half2_raw &raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
  __host__ __device__ operator __half2_raw() const { return __half2_raw{x.bits, y.bits}; }
#endif
};
typedef struct __half2 half2;
typedef struct __half2 __nv_half2;
typedef struct __half2 nv_half2;

#ifdef __cplusplus
VIRTUAL_CUDA_BOTH unsigned short __half_as_ushort(__half value) { return value.bits; }
VIRTUAL_CUDA_BOTH short __half_as_short(__half value) { return (short)value.bits; }
VIRTUAL_CUDA_BOTH __half __ushort_as_half(unsigned short bits) { return __half(__half_raw{bits}); }
VIRTUAL_CUDA_BOTH __half __short_as_half(short bits) { return __ushort_as_half((unsigned short)bits); }

VIRTUAL_CUDA_BOTH float __half2float(__half value) {
  const unsigned int sign = (value.bits & 0x8000u) << 16, rest = value.bits & 0x7FFFu;
  unsigned int bits = sign | ((rest + (112u << 10)) << 13);
  if (rest >= 0x7C00u) // infinite, or not a number
    bits = sign | 0x7F800000u | (rest & 0x3FFu) << 13;
  float result;
  memcpy(&result, &bits, sizeof(result));
  return rest < 0x400u ? (float)rest * (sign ? -0x1p-24f : 0x1p-24f) : result;
}

// Rounds to the nearest, ties to even.
VIRTUAL_CUDA_BOTH __half __float2half(float value) {
  unsigned int bits;
  memcpy(&bits, &value, sizeof(bits));
  const unsigned int sign = bits >> 16 & 0x8000u, rest = bits & 0x7FFFFFFFu;
  unsigned int result;
  if (rest > 0x7F800000u)
    result = 0x7FFFu;
  else if (rest >= 0x477FF000u) // more than the largest number rounds to
    result = sign | 0x7C00u;
  else if (rest >= 0x38800000u)
    result = sign | ((rest - 0x38000000u + 0xFFFu + (rest >> 13 & 1u)) >> 13);
  else
    result = sign | (unsigned int)rintf(fabsf(value) * 0x1p24f);
  return __ushort_as_half((unsigned short)result);
}

__host__ __device__ inline __half &__half::operator=(float value) {
  bits = __float2half(value).bits;
  return *this;
}
__host__ __device__ inline __half::operator float() const { return __half2float(*this); }

VIRTUAL_CUDA_BOTH __half __float2half_rn(float value) { return __float2half(value); }
VIRTUAL_CUDA_BOTH __half __float2half_rz(float value) { return __float2half(value); }
VIRTUAL_CUDA_BOTH __half __float2half_rd(float value) { return __float2half(value); }
VIRTUAL_CUDA_BOTH __half __float2half_ru(float value) { return __float2half(value); }
VIRTUAL_CUDA_BOTH __half __double2half(double value) { return __float2half((float)value); }
VIRTUAL_CUDA_BOTH __half2 __float2half2_rn(float value) { return __half2(value, value); }
VIRTUAL_CUDA_BOTH __half2 __floats2half2_rn(float x, float y) { return __half2(x, y); }
VIRTUAL_CUDA_BOTH __half2 __float22half2_rn(float2 value) { return __half2(value.x, value.y); }
VIRTUAL_CUDA_BOTH float2 __half22float2(__half2 value) { return float2{value.x, value.y}; }
VIRTUAL_CUDA_BOTH __half2 __half2half2(__half value) { return __half2(value, value); }
VIRTUAL_CUDA_BOTH __half2 __halves2half2(__half x, __half y) { return __half2(x, y); }
VIRTUAL_CUDA_BOTH __half2 make_half2(__half x, __half y) { return __half2(x, y); }
VIRTUAL_CUDA_BOTH __half __low2half(__half2 value) { return value.x; }
VIRTUAL_CUDA_BOTH __half __high2half(__half2 value) { return value.y; }
VIRTUAL_CUDA_BOTH float __low2float(__half2 value) { return value.x; }
VIRTUAL_CUDA_BOTH float __high2float(__half2 value) { return value.y; }
VIRTUAL_CUDA_BOTH __half2 __low2half2(__half2 value) { return __half2(value.x, value.x); }
VIRTUAL_CUDA_BOTH __half2 __high2half2(__half2 value) { return __half2(value.y, value.y); }
VIRTUAL_CUDA_BOTH __half2 __lowhigh2highlow(__half2 value) { return __half2(value.y, value.x); }
VIRTUAL_CUDA_BOTH __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
VIRTUAL_CUDA_BOTH __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
VIRTUAL_CUDA_NUMBER_INTEGERS(__half, half)

VIRTUAL_CUDA_NUMBER_FUNCTIONS(__half)
#ifndef __CUDA_NO_HALF_OPERATORS__
VIRTUAL_CUDA_NUMBER_OPERATORS(__half)
#endif
#ifndef __CUDA_NO_HALF2_OPERATORS__
VIRTUAL_CUDA_PAIR_OPERATORS(__half)
#endif
#endif
