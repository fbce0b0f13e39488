// Stand-in for CUDA's cuda.h: what host code needs of the driver API is the version and a few handles.
#pragma once

#include "driver_types.h"

#define CUDA_VERSION 12040

typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef unsigned long long CUdeviceptr;
