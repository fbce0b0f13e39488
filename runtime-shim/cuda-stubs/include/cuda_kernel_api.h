// Part of the stand-in for CUDA's cuda_runtime.h: what has to do with kernels. There are none on virtual
// GPUs, so nothing implements this; it is for reading sources that launch some.
#pragma once

#include "cuda_runtime_api.h"

enum cudaFuncCache {
  cudaFuncCachePreferNone = 0,
  cudaFuncCachePreferShared = 1,
  cudaFuncCachePreferL1 = 2,
  cudaFuncCachePreferEqual = 3
};
enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault = 0,
  cudaSharedMemBankSizeFourByte = 1,
  cudaSharedMemBankSizeEightByte = 2
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 13
};
enum cudaLimit { cudaLimitStackSize = 0, cudaLimitPrintfFifoSize = 1, cudaLimitMallocHeapSize = 2 };
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2
};
struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
  int maxDynamicSharedSizeBytes, preferredShmemCarveout;
};
enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned = 0,
  cudaChannelFormatKindUnsigned = 1,
  cudaChannelFormatKindFloat = 2,
  cudaChannelFormatKindNone = 3
};
struct cudaChannelFormatDesc {
  int x, y, z, w;
  enum cudaChannelFormatKind f;
};
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
typedef struct cudaArray *cudaArray_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t bytes,
                             cudaStream_t stream);
cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                        size_t bytes, cudaStream_t stream);
cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncSetCacheConfig(const void *kernel, enum cudaFuncCache cache);
cudaError_t cudaFuncSetSharedMemConfig(const void *kernel, enum cudaSharedMemConfig config);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int blockSize,
                                                          size_t bytes);
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value);
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit);
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cache);
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device, cudaStream_t stream);
cudaError_t cudaMemcpy2D(void *target, size_t targetPitch, const void *source, size_t sourcePitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *target, size_t targetPitch, const void *source, size_t sourcePitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream VIRTUAL_CUDA_DEFAULT(0));
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
#ifdef __cplusplus
}

template <typename T> cudaChannelFormatDesc cudaCreateChannelDesc();

// Their typed forms, which take the kernel itself, or a variable of the GPU.
template <typename... Arguments>
cudaError_t cudaLaunchKernel(void (*kernel)(Arguments...), dim3 grid, dim3 block, void **arguments,
                             size_t bytes = 0, cudaStream_t stream = 0);
template <typename... Arguments>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Arguments...), dim3 grid, dim3 block, void **arguments,
                                        size_t bytes = 0, cudaStream_t stream = 0);
template <typename... Arguments>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Arguments...), cudaFuncAttribute attribute, int value);
template <typename... Arguments>
cudaError_t cudaFuncSetCacheConfig(void (*kernel)(Arguments...), cudaFuncCache cache);
template <typename... Arguments>
cudaError_t cudaFuncSetSharedMemConfig(void (*kernel)(Arguments...), cudaSharedMemConfig config);
template <typename... Arguments>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*kernel)(Arguments...));
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Kernel kernel, int blockSize,
                                                          size_t bytes);
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int *gridSize, int *blockSize, Kernel kernel, size_t bytes = 0,
                                               int limit = 0);
template <typename Symbol>
cudaError_t cudaMemcpyToSymbol(const Symbol &symbol, const void *source, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice);
template <typename Symbol>
cudaError_t cudaMemcpyFromSymbol(void *target, const Symbol &symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost);
template <typename Symbol> cudaError_t cudaGetSymbolAddress(void **pointer, const Symbol &symbol);
template <typename T> cudaError_t cudaMallocAsync(T **pointer, size_t bytes, cudaStream_t stream);
template <typename T> cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned int flags);
#endif

#if defined(__CUDA__) && defined(__clang__)
// What clang makes of f<<<grid, block, bytes, stream>>>().
extern "C" unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t bytes = 0,
                                                    cudaStream_t stream = 0);
extern "C" int cudaConfigureCall(dim3 grid, dim3 block, size_t bytes = 0, cudaStream_t stream = 0);
#endif
