// Stand-in for CUDA's cudaTypedefs.h: types of the driver's functions.
#pragma once

#include "cuda.h"

#ifdef __cplusplus
typedef decltype(&cuTensorMapEncodeTiled) PFN_cuTensorMapEncodeTiled, PFN_cuTensorMapEncodeTiled_v12000;
typedef decltype(&cuGetErrorString) PFN_cuGetErrorString, PFN_cuGetErrorString_v6000;
typedef decltype(&cuStreamWriteValue32) PFN_cuStreamWriteValue32, PFN_cuStreamWriteValue32_v8000;
typedef decltype(&cuLaunchKernel) PFN_cuLaunchKernel, PFN_cuLaunchKernel_v4000;
typedef decltype(&cuMemGetAddressRange) PFN_cuMemGetAddressRange, PFN_cuMemGetAddressRange_v3020;
#endif
