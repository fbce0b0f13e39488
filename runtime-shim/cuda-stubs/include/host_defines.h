// Stand-in for CUDA's host_defines.h: what qualifies functions for a GPU means nothing to a host compiler.
#pragma once

#ifndef __CUDACC__
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#endif
#ifndef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#endif
#define CUDART_CB
#define CUDARTAPI
