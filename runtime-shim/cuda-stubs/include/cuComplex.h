// Stand-in for CUDA's cuComplex.h: complex numbers.
#pragma once

#include "vector_types.h"

typedef float2 cuFloatComplex;
typedef float2 cuComplex;
typedef double2 cuDoubleComplex;

#define VIRTUAL_CUDA_COMPLEX(type, number, real, imaginary, make, conjugate, add, subtract, multiply)        \
  static inline __host__ __device__ number real(type a) { return a.x; }                                      \
  static inline __host__ __device__ number imaginary(type a) { return a.y; }                                 \
  static inline __host__ __device__ type make(number x, number y) {                                          \
    type made = {x, y};                                                                                      \
    return made;                                                                                             \
  }                                                                                                          \
  static inline __host__ __device__ type conjugate(type a) { return make(a.x, -a.y); }                       \
  static inline __host__ __device__ type add(type a, type b) { return make(a.x + b.x, a.y + b.y); }          \
  static inline __host__ __device__ type subtract(type a, type b) { return make(a.x - b.x, a.y - b.y); }     \
  static inline __host__ __device__ type multiply(type a, type b) {                                          \
    return make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);                                               \
  }
VIRTUAL_CUDA_COMPLEX(cuFloatComplex, float, cuCrealf, cuCimagf, make_cuFloatComplex, cuConjf, cuCaddf,
                     cuCsubf, cuCmulf)
VIRTUAL_CUDA_COMPLEX(cuDoubleComplex, double, cuCreal, cuCimag, make_cuDoubleComplex, cuConj, cuCadd, cuCsub,
                     cuCmul)
#undef VIRTUAL_CUDA_COMPLEX
static inline __host__ __device__ cuComplex make_cuComplex(float x, float y) {
  return make_cuFloatComplex(x, y);
}
