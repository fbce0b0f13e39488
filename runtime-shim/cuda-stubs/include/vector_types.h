// Stand-in for CUDA's vector_types.h: the types of launch configurations and packed values.
#pragma once

#include "host_defines.h"

// `name`1 to `name`4; those of two and four lie as one load of the GPU wants them.
#define VIRTUAL_CUDA_VECTORS(name, type, two, four)                                                          \
  struct name##1 { type x; };                                                                                \
  struct __attribute__((aligned(two))) name##2 { type x, y; };                                               \
  struct name##3 { type x, y, z; };                                                                          \
  struct __attribute__((aligned(four))) name##4 { type x, y, z, w; };                                        \
  typedef struct name##1 name##1;                                                                            \
  typedef struct name##2 name##2;                                                                            \
  typedef struct name##3 name##3;                                                                            \
  typedef struct name##4 name##4;

VIRTUAL_CUDA_VECTORS(char, signed char, 2, 4)
VIRTUAL_CUDA_VECTORS(uchar, unsigned char, 2, 4)
VIRTUAL_CUDA_VECTORS(short, short, 4, 8)
VIRTUAL_CUDA_VECTORS(ushort, unsigned short, 4, 8)
VIRTUAL_CUDA_VECTORS(int, int, 8, 16)
VIRTUAL_CUDA_VECTORS(uint, unsigned int, 8, 16)
VIRTUAL_CUDA_VECTORS(long, long, 16, 16)
VIRTUAL_CUDA_VECTORS(ulong, unsigned long, 16, 16)
VIRTUAL_CUDA_VECTORS(longlong, long long, 16, 16)
VIRTUAL_CUDA_VECTORS(ulonglong, unsigned long long, 16, 16)
VIRTUAL_CUDA_VECTORS(float, float, 8, 16)
VIRTUAL_CUDA_VECTORS(double, double, 16, 16)
#undef VIRTUAL_CUDA_VECTORS

struct dim3 {
  unsigned int x, y, z;
#ifdef __cplusplus
  constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
#endif
};
typedef struct dim3 dim3;
