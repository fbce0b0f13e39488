// Stand-in for CUDA's cufft.h. Nothing implements it: it is for reading.
#pragma once

#include "cuComplex.h"
#include "driver_types.h"
#include "library_types.h"

typedef enum cufftResult_t {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_TYPE = 3,
  CUFFT_INVALID_VALUE = 4,
  CUFFT_INTERNAL_ERROR = 5,
  CUFFT_EXEC_FAILED = 6,
  CUFFT_SETUP_FAILED = 7,
  CUFFT_INVALID_SIZE = 8,
  CUFFT_UNALIGNED_DATA = 9,
  CUFFT_INVALID_DEVICE = 11,
  CUFFT_NO_WORKSPACE = 13,
  CUFFT_NOT_IMPLEMENTED = 14,
  CUFFT_NOT_SUPPORTED = 16
} cufftResult;
typedef enum cufftType_t {
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_C2C = 0x29,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c,
  CUFFT_Z2Z = 0x69
} cufftType;
#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1
typedef int cufftHandle;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;

#ifdef __cplusplus
extern "C" {
#endif
cufftResult cufftCreate(cufftHandle *plan);
cufftResult cufftDestroy(cufftHandle plan);
cufftResult cufftPlan1d(cufftHandle *plan, int length, cufftType type, int batch);
cufftResult cufftPlan2d(cufftHandle *plan, int x, int y, cufftType type);
cufftResult cufftPlan3d(cufftHandle *plan, int x, int y, int z, cufftType type);
cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inEmbed, int inStride, int inDistance,
                          int *outEmbed, int outStride, int outDistance, cufftType type, int batch);
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
cufftResult cufftSetWorkArea(cufftHandle plan, void *memory);
cufftResult cufftSetAutoAllocation(cufftHandle plan, int isOn);
cufftResult cufftGetSize(cufftHandle plan, size_t *bytes);
cufftResult cufftGetVersion(int *version);
cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *from, cufftComplex *to, int direction);
cufftResult cufftExecR2C(cufftHandle plan, cufftReal *from, cufftComplex *to);
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *from, cufftReal *to);
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *from, cufftDoubleComplex *to, int direction);
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *from, cufftDoubleComplex *to);
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *from, cufftDoubleReal *to);
#ifdef __cplusplus
}

template <typename... Arguments> cufftResult cufftMakePlanMany(Arguments &&...);
template <typename... Arguments> cufftResult cufftMakePlanMany64(Arguments &&...);
template <typename... Arguments> cufftResult cufftXtMakePlanMany(Arguments &&...);
template <typename... Arguments> cufftResult cufftXtExec(Arguments &&...);
template <typename... Arguments> cufftResult cufftEstimateMany(Arguments &&...);
#endif
