// Stand-in for CUDA's cuda_pipeline_primitives.h: copies to shared memory in kernels.
#pragma once

#include "host_defines.h"

#include <stddef.h>

#ifdef __cplusplus
__host__ __device__ void __pipeline_memcpy_async(void *shared, const void *global, size_t bytes,
                                                 size_t zeros = 0);
__host__ __device__ void __pipeline_commit();
__host__ __device__ void __pipeline_wait_prior(size_t prior);
typedef unsigned long long __mbarrier_t;
__host__ __device__ void __pipeline_arrive_on(__mbarrier_t *barrier);
#endif
