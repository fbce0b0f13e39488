// Stand-in for CUDA's curand_kernel.h: the states of random numbers in kernels.
#pragma once

#include "curand.h"
#include "vector_types.h"

struct curandStateXORWOW {
  unsigned int d, v[5];
};
typedef struct curandStateXORWOW curandStateXORWOW_t;
typedef struct curandStateXORWOW curandState_t;
typedef struct curandStateXORWOW curandState;
struct curandStatePhilox4_32_10 {
  uint4 ctr, output;
  uint2 key;
  unsigned int STATE;
};
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
struct curandStateMRG32k3a {
  unsigned int s1[3], s2[3];
};
typedef struct curandStateMRG32k3a curandStateMRG32k3a_t;

#ifdef __cplusplus
template <typename State>
__device__ void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                            State *state);
template <typename State> __device__ unsigned int curand(State *state);
template <typename State> __device__ float curand_uniform(State *state);
template <typename State> __device__ double curand_uniform_double(State *state);
template <typename State> __device__ float curand_normal(State *state);
template <typename State> __device__ double curand_normal_double(State *state);
template <typename State> __device__ float4 curand_uniform4(State *state);
template <typename State> __device__ float4 curand_normal4(State *state);
template <typename State> __device__ uint4 curand4(State *state);
#endif
