// Part of the stand-ins for CUDA's cuda_fp16.h and cuda_bf16.h: what both say of their numbers. The
// arithmetic is done in float, on hosts too, as CUDA does it where a GPU has none.
#pragma once

#include "host_defines.h"
#include "vector_types.h"

#include <string.h>

#ifdef __cplusplus
#include <cmath>

// In CUDA some of these are for GPUs alone; hosts may have all of them here.
#define VIRTUAL_CUDA_BOTH static inline __host__ __device__

/// What makes a number of others, and back.
#define VIRTUAL_CUDA_NUMBER_MEMBERS(number)                                                                  \
  number() = default;                                                                                        \
  __host__ __device__ number(float value) { *this = value; }                                                 \
  __host__ __device__ number(double value) : number((float)value) {}                                         \
  __host__ __device__ number(int value) : number((float)value) {}                                            \
  __host__ __device__ number(unsigned int value) : number((float)value) {}                                   \
  __host__ __device__ number(short value) : number((float)value) {}                                          \
  __host__ __device__ number(unsigned short value) : number((float)value) {}                                 \
  __host__ __device__ number(long value) : number((float)value) {}                                           \
  __host__ __device__ number(unsigned long value) : number((float)value) {}                                  \
  __host__ __device__ number(long long value) : number((float)value) {}                                      \
  __host__ __device__ number(unsigned long long value) : number((float)value) {}                             \
  __host__ __device__ number &operator=(float value);                                                        \
  __host__ __device__ operator float() const;

/// Operators of numbers and pairs. LibTorch's builds switch them off by macros, as CUDA lets them.
#define VIRTUAL_CUDA_NUMBER_OPERATOR(number, op)                                                             \
  VIRTUAL_CUDA_BOTH number operator op(const number &a, const number &b) {                                   \
    return number((float)a op(float) b);                                                                     \
  }                                                                                                          \
  VIRTUAL_CUDA_BOTH number &operator op## = (number & a, const number &b) { return a = a op b; }
#define VIRTUAL_CUDA_NUMBER_COMPARISON(number, op)                                                           \
  VIRTUAL_CUDA_BOTH bool operator op(const number &a, const number &b) { return (float)a op(float) b; }
#define VIRTUAL_CUDA_NUMBER_OPERATORS(number)                                                                \
  VIRTUAL_CUDA_NUMBER_OPERATOR(number, +)                                                                    \
  VIRTUAL_CUDA_NUMBER_OPERATOR(number, -)                                                                    \
  VIRTUAL_CUDA_NUMBER_OPERATOR(number, *)                                                                    \
  VIRTUAL_CUDA_NUMBER_OPERATOR(number, /)                                                                    \
  VIRTUAL_CUDA_NUMBER_COMPARISON(number, ==)                                                                 \
  VIRTUAL_CUDA_NUMBER_COMPARISON(number, !=)                                                                 \
  VIRTUAL_CUDA_NUMBER_COMPARISON(number, <)                                                                  \
  VIRTUAL_CUDA_NUMBER_COMPARISON(number, >)                                                                  \
  VIRTUAL_CUDA_NUMBER_COMPARISON(number, <=)                                                                 \
  VIRTUAL_CUDA_NUMBER_COMPARISON(number, >=)                                                                 \
  VIRTUAL_CUDA_BOTH number operator-(const number &a) { return number(-(float)a); }
#define VIRTUAL_CUDA_PAIR_OPERATOR(number, op)                                                               \
  VIRTUAL_CUDA_BOTH number##2 operator op(const number##2 & a, const number##2 & b) {                        \
    return number##2(number((float)a.x op(float) b.x), number((float)a.y op(float) b.y));                    \
  }                                                                                                          \
  VIRTUAL_CUDA_BOTH number##2 &operator op## = (number##2 & a, const number##2 & b) { return a = a op b; }
#define VIRTUAL_CUDA_PAIR_OPERATORS(number)                                                                  \
  VIRTUAL_CUDA_PAIR_OPERATOR(number, +)                                                                      \
  VIRTUAL_CUDA_PAIR_OPERATOR(number, -)                                                                      \
  VIRTUAL_CUDA_PAIR_OPERATOR(number, *)                                                                      \
  VIRTUAL_CUDA_PAIR_OPERATOR(number, /)

// A function of one number, of two or of three, and its form for pairs.
#define VIRTUAL_CUDA_UNARY(number, name, pairs, value)                                                       \
  VIRTUAL_CUDA_BOTH number name(number a) {                                                                  \
    const float x = a;                                                                                       \
    return number(value);                                                                                    \
  }                                                                                                          \
  VIRTUAL_CUDA_BOTH number##2 pairs(number##2 a) { return number##2(name(a.x), name(a.y)); }
#define VIRTUAL_CUDA_BINARY(number, name, pairs, value)                                                      \
  VIRTUAL_CUDA_BOTH number name(number a, number b) {                                                        \
    const float x = a, y = b;                                                                                \
    return number(value);                                                                                    \
  }                                                                                                          \
  VIRTUAL_CUDA_BOTH number##2 pairs(number##2 a, number##2 b) {                                              \
    return number##2(name(a.x, b.x), name(a.y, b.y));                                                        \
  }
#define VIRTUAL_CUDA_TERNARY(number, name, pairs, value)                                                     \
  VIRTUAL_CUDA_BOTH number name(number a, number b, number c) {                                              \
    const float x = a, y = b, z = c;                                                                         \
    return number(value);                                                                                    \
  }                                                                                                          \
  VIRTUAL_CUDA_BOTH number##2 pairs(number##2 a, number##2 b, number##2 c) {                                 \
    return number##2(name(a.x, b.x, c.x), name(a.y, b.y, c.y));                                              \
  }
// A comparison: of numbers, of pairs as a pair of 0 and 1, and of both halves of a pair.
#define VIRTUAL_CUDA_COMPARE(number, name, both, op)                                                         \
  VIRTUAL_CUDA_BOTH bool name(number a, number b) { return (float)a op(float) b; }                           \
  VIRTUAL_CUDA_BOTH bool name##u(number a, number b) { return (float)a op(float) b; }                        \
  VIRTUAL_CUDA_BOTH number##2 name##2(number##2 a, number##2 b) {                                            \
    return number##2(number((float)name(a.x, b.x)), number((float)name(a.y, b.y)));                          \
  }                                                                                                          \
  VIRTUAL_CUDA_BOTH bool both(number##2 a, number##2 b) { return name(a.x, b.x) && name(a.y, b.y); }

/// The functions that have one name for both kinds of numbers.
#define VIRTUAL_CUDA_NUMBER_FUNCTIONS(number)                                                                \
  VIRTUAL_CUDA_BINARY(number, __hadd, __hadd2, x + y)                                                        \
  VIRTUAL_CUDA_BINARY(number, __hsub, __hsub2, x - y)                                                        \
  VIRTUAL_CUDA_BINARY(number, __hmul, __hmul2, x *y)                                                         \
  VIRTUAL_CUDA_BINARY(number, __hadd_rn, __hadd2_rn, x + y)                                                  \
  VIRTUAL_CUDA_BINARY(number, __hsub_rn, __hsub2_rn, x - y)                                                  \
  VIRTUAL_CUDA_BINARY(number, __hmul_rn, __hmul2_rn, x *y)                                                   \
  VIRTUAL_CUDA_BINARY(number, __hadd_sat, __hadd2_sat, fminf(fmaxf(x + y, 0.0f), 1.0f))                      \
  VIRTUAL_CUDA_BINARY(number, __hsub_sat, __hsub2_sat, fminf(fmaxf(x - y, 0.0f), 1.0f))                      \
  VIRTUAL_CUDA_BINARY(number, __hmul_sat, __hmul2_sat, fminf(fmaxf(x *y, 0.0f), 1.0f))                       \
  VIRTUAL_CUDA_BINARY(number, __hdiv, __h2div, x / y)                                                        \
  VIRTUAL_CUDA_BINARY(number, __hmax, __hmax2, fmaxf(x, y))                                                  \
  VIRTUAL_CUDA_BINARY(number, __hmin, __hmin2, fminf(x, y))                                                  \
  VIRTUAL_CUDA_BINARY(number, __hmax_nan, __hmax2_nan, fmaxf(x, y))                                          \
  VIRTUAL_CUDA_BINARY(number, __hmin_nan, __hmin2_nan, fminf(x, y))                                          \
  VIRTUAL_CUDA_TERNARY(number, __hfma, __hfma2, fmaf(x, y, z))                                               \
  VIRTUAL_CUDA_TERNARY(number, __hfma_sat, __hfma2_sat, fminf(fmaxf(fmaf(x, y, z), 0.0f), 1.0f))             \
  VIRTUAL_CUDA_TERNARY(number, __hfma_relu, __hfma2_relu, fmaxf(fmaf(x, y, z), 0.0f))                        \
  VIRTUAL_CUDA_UNARY(number, __hneg, __hneg2, -x)                                                            \
  VIRTUAL_CUDA_UNARY(number, __habs, __habs2, fabsf(x))                                                      \
  VIRTUAL_CUDA_UNARY(number, hsqrt, h2sqrt, sqrtf(x))                                                        \
  VIRTUAL_CUDA_UNARY(number, hrsqrt, h2rsqrt, 1.0f / sqrtf(x))                                               \
  VIRTUAL_CUDA_UNARY(number, hrcp, h2rcp, 1.0f / x)                                                          \
  VIRTUAL_CUDA_UNARY(number, hexp, h2exp, expf(x))                                                           \
  VIRTUAL_CUDA_UNARY(number, hexp2, h2exp2, exp2f(x))                                                        \
  VIRTUAL_CUDA_UNARY(number, hexp10, h2exp10, powf(10.0f, x))                                                \
  VIRTUAL_CUDA_UNARY(number, hlog, h2log, logf(x))                                                           \
  VIRTUAL_CUDA_UNARY(number, hlog2, h2log2, log2f(x))                                                        \
  VIRTUAL_CUDA_UNARY(number, hlog10, h2log10, log10f(x))                                                     \
  VIRTUAL_CUDA_UNARY(number, hsin, h2sin, sinf(x))                                                           \
  VIRTUAL_CUDA_UNARY(number, hcos, h2cos, cosf(x))                                                           \
  VIRTUAL_CUDA_UNARY(number, htanh, h2tanh, tanhf(x))                                                        \
  VIRTUAL_CUDA_UNARY(number, hfloor, h2floor, floorf(x))                                                     \
  VIRTUAL_CUDA_UNARY(number, hceil, h2ceil, ceilf(x))                                                        \
  VIRTUAL_CUDA_UNARY(number, htrunc, h2trunc, truncf(x))                                                     \
  VIRTUAL_CUDA_UNARY(number, hrint, h2rint, rintf(x))                                                        \
  VIRTUAL_CUDA_COMPARE(number, __heq, __hbeq2, ==)                                                           \
  VIRTUAL_CUDA_COMPARE(number, __hne, __hbne2, !=)                                                           \
  VIRTUAL_CUDA_COMPARE(number, __hlt, __hblt2, <)                                                            \
  VIRTUAL_CUDA_COMPARE(number, __hle, __hble2, <=)                                                           \
  VIRTUAL_CUDA_COMPARE(number, __hgt, __hbgt2, >)                                                            \
  VIRTUAL_CUDA_COMPARE(number, __hge, __hbge2, >=)                                                           \
  VIRTUAL_CUDA_BOTH bool __hisnan(number a) { return (float)a != (float)a; }                                 \
  VIRTUAL_CUDA_BOTH int __hisinf(number a) {                                                                 \
    return fabsf(a) == __builtin_inff() ? (float)a > 0 ? 1 : -1 : 0;                                         \
  }

/// Conversions between a number and integers: `name` is how CUDA writes the number, round one of its modes.
#define VIRTUAL_CUDA_NUMBER_INTEGER(number, name, written, type)                                             \
  VIRTUAL_CUDA_BOTH type __##name##2##written##_rn(number a) { return (type)rintf(a); }                      \
  VIRTUAL_CUDA_BOTH type __##name##2##written##_rz(number a) { return (type)(float)a; }                      \
  VIRTUAL_CUDA_BOTH type __##name##2##written##_rd(number a) { return (type)floorf(a); }                     \
  VIRTUAL_CUDA_BOTH type __##name##2##written##_ru(number a) { return (type)ceilf(a); }                      \
  VIRTUAL_CUDA_BOTH number __##written##2##name##_rn(type a) { return number((float)a); }                    \
  VIRTUAL_CUDA_BOTH number __##written##2##name##_rz(type a) { return number((float)a); }
#define VIRTUAL_CUDA_NUMBER_INTEGERS(number, name)                                                           \
  VIRTUAL_CUDA_NUMBER_INTEGER(number, name, short, short)                                                    \
  VIRTUAL_CUDA_NUMBER_INTEGER(number, name, ushort, unsigned short)                                          \
  VIRTUAL_CUDA_NUMBER_INTEGER(number, name, int, int)                                                        \
  VIRTUAL_CUDA_NUMBER_INTEGER(number, name, uint, unsigned int)                                              \
  VIRTUAL_CUDA_NUMBER_INTEGER(number, name, ll, long long)                                                   \
  VIRTUAL_CUDA_NUMBER_INTEGER(number, name, ull, unsigned long long)
#endif
