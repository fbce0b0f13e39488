// The last error of a thread, as CUDA's runtime API keeps it.
#pragma once

#include <cuda_runtime_api.h>

namespace virtualdevices {

// Remembers the error unless it is cudaSuccess, and returns it.
cudaError_t report(cudaError_t error);

// cudaErrorNoDevice, cudaErrorInvalidDevice or cudaSuccess.
cudaError_t checkDevice(int device);

} // namespace virtualdevices
