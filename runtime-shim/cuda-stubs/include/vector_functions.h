// Stand-in for CUDA's vector_functions.h: what makes packed values.
#pragma once

#include "vector_types.h"

#define VIRTUAL_CUDA_MAKERS(name, type)                                                                      \
  static inline __host__ __device__ struct name##1 make_##name##1(type x) {                                  \
    struct name##1 made = {x};                                                                               \
    return made;                                                                                             \
  }                                                                                                          \
  static inline __host__ __device__ struct name##2 make_##name##2(type x, type y) {                          \
    struct name##2 made = {x, y};                                                                            \
    return made;                                                                                             \
  }                                                                                                          \
  static inline __host__ __device__ struct name##3 make_##name##3(type x, type y, type z) {                  \
    struct name##3 made = {x, y, z};                                                                         \
    return made;                                                                                             \
  }                                                                                                          \
  static inline __host__ __device__ struct name##4 make_##name##4(type x, type y, type z, type w) {          \
    struct name##4 made = {x, y, z, w};                                                                      \
    return made;                                                                                             \
  }

VIRTUAL_CUDA_MAKERS(char, signed char)
VIRTUAL_CUDA_MAKERS(uchar, unsigned char)
VIRTUAL_CUDA_MAKERS(short, short)
VIRTUAL_CUDA_MAKERS(ushort, unsigned short)
VIRTUAL_CUDA_MAKERS(int, int)
VIRTUAL_CUDA_MAKERS(uint, unsigned int)
VIRTUAL_CUDA_MAKERS(long, long)
VIRTUAL_CUDA_MAKERS(ulong, unsigned long)
VIRTUAL_CUDA_MAKERS(longlong, long long)
VIRTUAL_CUDA_MAKERS(ulonglong, unsigned long long)
VIRTUAL_CUDA_MAKERS(float, float)
VIRTUAL_CUDA_MAKERS(double, double)
#undef VIRTUAL_CUDA_MAKERS
