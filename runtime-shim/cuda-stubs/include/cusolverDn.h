// Stand-in for CUDA's cusolverDn.h. Nothing implements it: it is for reading.
#pragma once

#include "cublas_v2.h"
#include "cusolver_common.h"

typedef struct cusolverDnContext *cusolverDnHandle_t;
typedef struct syevjInfo *syevjInfo_t;
typedef struct gesvdjInfo *gesvdjInfo_t;
typedef struct cusolverDnParams *cusolverDnParams_t;

#ifdef __cplusplus
extern "C" {
#endif
cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream);
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t *stream);
#ifdef __cplusplus
}

// Nothing depends on the types of what these get.
#define VIRTUAL_CUSOLVER(name) template <typename... Arguments> cusolverStatus_t name(Arguments &&...)
VIRTUAL_CUSOLVER(cusolverDnCreateSyevjInfo);
VIRTUAL_CUSOLVER(cusolverDnDestroySyevjInfo);
VIRTUAL_CUSOLVER(cusolverDnXsyevjSetTolerance);
VIRTUAL_CUSOLVER(cusolverDnXsyevjSetMaxSweeps);
VIRTUAL_CUSOLVER(cusolverDnXsyevjSetSortEig);
VIRTUAL_CUSOLVER(cusolverDnXsyevjGetResidual);
VIRTUAL_CUSOLVER(cusolverDnXsyevjGetSweeps);
VIRTUAL_CUSOLVER(cusolverDnCreateGesvdjInfo);
VIRTUAL_CUSOLVER(cusolverDnDestroyGesvdjInfo);
VIRTUAL_CUSOLVER(cusolverDnXgesvdjSetTolerance);
VIRTUAL_CUSOLVER(cusolverDnXgesvdjSetMaxSweeps);
VIRTUAL_CUSOLVER(cusolverDnXgesvdjSetSortEig);
VIRTUAL_CUSOLVER(cusolverDnCreateParams);
VIRTUAL_CUSOLVER(cusolverDnDestroyParams);
VIRTUAL_CUSOLVER(cusolverDnSetAdvOptions);
VIRTUAL_CUSOLVER(cusolverDnXpotrf);
VIRTUAL_CUSOLVER(cusolverDnXpotrf_bufferSize);
VIRTUAL_CUSOLVER(cusolverDnXpotrs);
VIRTUAL_CUSOLVER(cusolverDnXgetrf);
VIRTUAL_CUSOLVER(cusolverDnXgetrf_bufferSize);
VIRTUAL_CUSOLVER(cusolverDnXgetrs);
VIRTUAL_CUSOLVER(cusolverDnXgeqrf);
VIRTUAL_CUSOLVER(cusolverDnXgeqrf_bufferSize);
VIRTUAL_CUSOLVER(cusolverDnXsyevd);
VIRTUAL_CUSOLVER(cusolverDnXsyevd_bufferSize);
VIRTUAL_CUSOLVER(cusolverDnXgesvd);
VIRTUAL_CUSOLVER(cusolverDnXgesvd_bufferSize);
VIRTUAL_CUSOLVER(cusolverDnXsyevBatched);
VIRTUAL_CUSOLVER(cusolverDnXsyevBatched_bufferSize);

// These have a name for each type of numbers.
#define VIRTUAL_CUSOLVER_TYPES(name)                                                                         \
  VIRTUAL_CUSOLVER(cusolverDnS##name);                                                                       \
  VIRTUAL_CUSOLVER(cusolverDnD##name);                                                                       \
  VIRTUAL_CUSOLVER(cusolverDnC##name);                                                                       \
  VIRTUAL_CUSOLVER(cusolverDnZ##name);
VIRTUAL_CUSOLVER_TYPES(potrf)
VIRTUAL_CUSOLVER_TYPES(potrf_bufferSize)
VIRTUAL_CUSOLVER_TYPES(potrs)
VIRTUAL_CUSOLVER_TYPES(potrfBatched)
VIRTUAL_CUSOLVER_TYPES(potrsBatched)
VIRTUAL_CUSOLVER_TYPES(potri)
VIRTUAL_CUSOLVER_TYPES(potri_bufferSize)
VIRTUAL_CUSOLVER_TYPES(getrf)
VIRTUAL_CUSOLVER_TYPES(getrf_bufferSize)
VIRTUAL_CUSOLVER_TYPES(getrs)
VIRTUAL_CUSOLVER_TYPES(geqrf)
VIRTUAL_CUSOLVER_TYPES(geqrf_bufferSize)
VIRTUAL_CUSOLVER_TYPES(ormqr)
VIRTUAL_CUSOLVER_TYPES(ormqr_bufferSize)
VIRTUAL_CUSOLVER_TYPES(orgqr)
VIRTUAL_CUSOLVER_TYPES(orgqr_bufferSize)
VIRTUAL_CUSOLVER_TYPES(unmqr)
VIRTUAL_CUSOLVER_TYPES(ungqr)
VIRTUAL_CUSOLVER_TYPES(gesvd)
VIRTUAL_CUSOLVER_TYPES(gesvd_bufferSize)
VIRTUAL_CUSOLVER_TYPES(gesvdj)
VIRTUAL_CUSOLVER_TYPES(gesvdj_bufferSize)
VIRTUAL_CUSOLVER_TYPES(gesvdjBatched)
VIRTUAL_CUSOLVER_TYPES(gesvdjBatched_bufferSize)
VIRTUAL_CUSOLVER_TYPES(gesvdaStridedBatched)
VIRTUAL_CUSOLVER_TYPES(gesvdaStridedBatched_bufferSize)
VIRTUAL_CUSOLVER_TYPES(syevd)
VIRTUAL_CUSOLVER_TYPES(syevd_bufferSize)
VIRTUAL_CUSOLVER_TYPES(syevdx)
VIRTUAL_CUSOLVER_TYPES(syevdx_bufferSize)
VIRTUAL_CUSOLVER_TYPES(syevj)
VIRTUAL_CUSOLVER_TYPES(syevj_bufferSize)
VIRTUAL_CUSOLVER_TYPES(syevjBatched)
VIRTUAL_CUSOLVER_TYPES(syevjBatched_bufferSize)
VIRTUAL_CUSOLVER_TYPES(sygvd)
VIRTUAL_CUSOLVER_TYPES(sygvd_bufferSize)
VIRTUAL_CUSOLVER_TYPES(heevd)
VIRTUAL_CUSOLVER_TYPES(heevd_bufferSize)
VIRTUAL_CUSOLVER_TYPES(heevjBatched)
VIRTUAL_CUSOLVER_TYPES(heevjBatched_bufferSize)
VIRTUAL_CUSOLVER_TYPES(sytrf)
VIRTUAL_CUSOLVER_TYPES(sytrf_bufferSize)
#undef VIRTUAL_CUSOLVER_TYPES
#undef VIRTUAL_CUSOLVER
#endif
