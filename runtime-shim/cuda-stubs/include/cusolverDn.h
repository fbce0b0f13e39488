// Stand-in for CUDA's cusolverDn.h. Nothing implements it: it is for reading.
#pragma once

#include "cublas_v2.h"
#include "cusolver_common.h"

typedef struct cusolverDnContext *cusolverDnHandle_t;
typedef struct syevjInfo *syevjInfo_t;
typedef struct gesvdjInfo *gesvdjInfo_t;

#ifdef __cplusplus
extern "C" {
#endif
cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream);
#ifdef __cplusplus
}

// Nothing depends on the types of what these get.
#define VIRTUAL_CUSOLVER(name) template <typename... Arguments> cusolverStatus_t name(Arguments &&...)
VIRTUAL_CUSOLVER(cusolverDnSpotrf_bufferSize);
VIRTUAL_CUSOLVER(cusolverDnDpotrf_bufferSize);
VIRTUAL_CUSOLVER(cusolverDnSpotrf);
VIRTUAL_CUSOLVER(cusolverDnDpotrf);
VIRTUAL_CUSOLVER(cusolverDnSpotrs);
VIRTUAL_CUSOLVER(cusolverDnDpotrs);
VIRTUAL_CUSOLVER(cusolverDnCreateSyevjInfo);
VIRTUAL_CUSOLVER(cusolverDnDestroySyevjInfo);
VIRTUAL_CUSOLVER(cusolverDnSsyevjBatched_bufferSize);
VIRTUAL_CUSOLVER(cusolverDnSsyevjBatched);
VIRTUAL_CUSOLVER(cusolverDnSgeqrf_bufferSize);
VIRTUAL_CUSOLVER(cusolverDnSgeqrf);
VIRTUAL_CUSOLVER(cusolverDnSgesvd);
#undef VIRTUAL_CUSOLVER
#endif
