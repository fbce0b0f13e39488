// Stand-in for THC/THC.h of PyTorch before 1.11. Nothing implements it: it is for reading.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime.h>

struct THCState;

#define THCudaCheck(error) C10_CUDA_CHECK(error)
#define THCudaCheckWarn(error) C10_CUDA_CHECK_WARN(error)
#define THCublasCheck(status) TORCH_CUDABLAS_CHECK(status)
#define THCusparseCheck(status) TORCH_CUDASPARSE_CHECK(status)
#define THAssert(condition) TORCH_CHECK(condition)
#define THArgCheck(condition, argument, ...) TORCH_CHECK(condition, __VA_ARGS__)
#define THError(...) TORCH_CHECK(false, __VA_ARGS__)
#define THC_API
#define THC_CLASS

void *THCudaMalloc(THCState *state, size_t bytes);
void THCudaFree(THCState *state, void *pointer);
cudaStream_t THCState_getCurrentStream(THCState *state);
cublasHandle_t THCState_getCurrentBlasHandle(THCState *state);
int THCState_getNumDevices(THCState *state);
c10::Allocator *THCState_getCudaHostAllocator(THCState *state);
int THCState_getPeerToPeerAccess(THCState *state, int device, int peer);
cudaError_t THCudaMemGetInfo(THCState *state, size_t *free, size_t *total, size_t *largest);
c10::Allocator *getTHCCachingHostAllocator();

template <typename T> __host__ __device__ T THCCeilDiv(T a, T b) { return (a + b - 1) / b; }
template <typename T> __host__ __device__ T THCRoundUp(T a, T b) { return THCCeilDiv(a, b) * b; }

namespace at {

/// The context when it had a state of THC.
struct ContextOfTHC : Context {
  THCState *lazyInitCUDA();
  THCState *getTHCState();
};
ContextOfTHC &globalContextOfTHC();

} // namespace at
#define globalContext globalContextOfTHC
