/* The part of cuFFT's interface that specconv uses. */
#pragma once

#include <cuda_runtime.h>

typedef int cufftHandle;
typedef int cufftResult;
typedef float2 cufftComplex;
typedef float cufftReal;
typedef enum { CUFFT_R2C = 0x2a, CUFFT_C2R = 0x2c, CUFFT_C2C = 0x29 } cufftType;
#define CUFFT_SUCCESS 0
#define CUFFT_FORWARD (-1)
#define CUFFT_INVERSE 1

extern "C" {
cufftResult cufftPlan1d(cufftHandle *plan, int nx, cufftType type, int batch);
cufftResult cufftDestroy(cufftHandle plan);
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *idata, cufftComplex *odata, int direction);
cufftResult cufftExecR2C(cufftHandle plan, cufftReal *idata, cufftComplex *odata);
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *idata, cufftReal *odata);
}
