// Stand-in for helper_cuda.h of NVIDIA's CUDA samples, which projects include to check what CUDA returns.
// Nothing implements it: it is for reading.
#pragma once

#include "cuda_runtime.h"

#define checkCudaErrors(result) static_cast<void>(result)
#define getLastCudaError(message) static_cast<void>(message)
#define printLastCudaError(message) static_cast<void>(message)

int gpuDeviceInit(int device);
int gpuGetMaxGflopsDeviceId();
int findCudaDevice(int argc, const char **argv);
