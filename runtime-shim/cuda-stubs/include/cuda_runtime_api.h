/// The part of CUDA's runtime API that host code of LibTorch programs calls, on virtual GPUs.
///
/// For sources that include CUDA headers where there is no CUDA toolkit: they compile against these headers
/// and link the look-alike libc10_cuda, which implements what is declared here. Functions, arguments, units
/// (bytes, milliseconds) and errors are those of the CUDA runtime API reference. Every call is synchronous:
/// work is finished when a call returns, so streams and events never have to be waited for.
///
/// There is no compiler for kernels: sources with __global__ functions and <<<>>> need the real toolkit.
#pragma once

#include "driver_types.h"

#define CUDART_VERSION 12040
/// Defined by these stand-ins only.
#define VIRTUAL_CUDA_HEADERS 1

#ifdef __cplusplus
#define VIRTUAL_CUDA_DEFAULT(value) = value
extern "C" {
#else
#define VIRTUAL_CUDA_DEFAULT(value)
#endif

// Devices. An ordinal that does not exist is cudaErrorInvalidDevice; no devices is cudaErrorNoDevice.
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
/// "0000:03:00.0" for virtual GPU 3; cudaErrorInvalidValue when `length` is too short for it.
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);

// Errors: the last one of this thread.
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);

// Memory of the current device, page-locked host memory, and copies. A pointer that is not where `kind`
// says is cudaErrorInvalidValue, as with unified addresses.
cudaError_t cudaMalloc(void **pointer, size_t bytes);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMallocHost(void **pointer, size_t bytes);
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags);
cudaError_t cudaFreeHost(void *pointer);
/// Memory of the program becomes page-locked; a part that is so already is
/// cudaErrorHostMemoryAlreadyRegistered.
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags);
cudaError_t cudaHostUnregister(void *pointer);
/// Memory for the host and the current device; also counts for the device's limit, and cudaFree() frees it.
cudaError_t cudaMallocManaged(void **pointer, size_t bytes,
                              unsigned int flags VIRTUAL_CUDA_DEFAULT(cudaMemAttachGlobal));
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaMemcpy(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream VIRTUAL_CUDA_DEFAULT(0));
cudaError_t cudaMemcpyPeer(void *target, int targetDevice, const void *source, int sourceDevice,
                           size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void *target, int targetDevice, const void *source, int sourceDevice,
                                size_t bytes, cudaStream_t stream VIRTUAL_CUDA_DEFAULT(0));
cudaError_t cudaMemset(void *target, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *target, int value, size_t bytes,
                            cudaStream_t stream VIRTUAL_CUDA_DEFAULT(0));
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);

// Streams and events.
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
/// Calls the function at once: the work before it is finished.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *userData);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags VIRTUAL_CUDA_DEFAULT(0));
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream VIRTUAL_CUDA_DEFAULT(0));
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);

#ifdef __cplusplus
}
#endif

#include "cuda_kernel_api.h"
