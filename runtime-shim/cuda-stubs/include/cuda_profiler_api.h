// Stand-in for CUDA's cuda_profiler_api.h. Nothing implements it: it is for reading.
#pragma once

#include "driver_types.h"

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
#ifdef __cplusplus
}
#endif
