// Part of the stand-in for CUDA's cuda_runtime.h: what has to do with kernels. There are none on virtual
// GPUs, so nothing implements this; it is for reading sources that launch some.
#pragma once

#include "cuda_runtime_api.h"
#include "texture_types.h"

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
enum cudaLimit {
  cudaLimitStackSize = 0,
  cudaLimitPrintfFifoSize = 1,
  cudaLimitMallocHeapSize = 2,
  cudaLimitDevRuntimeSyncDepth = 3,
  cudaLimitDevRuntimePendingLaunchCount = 4,
  cudaLimitMaxL2FetchGranularity = 5,
  cudaLimitPersistingL2CacheSize = 6
};
enum cudaSharedCarveout {
  cudaSharedmemCarveoutDefault = -1,
  cudaSharedmemCarveoutMaxL1 = 0,
  cudaSharedmemCarveoutMaxShared = 100
};
enum cudaComputeMode {
  cudaComputeModeDefault = 0,
  cudaComputeModeExclusive = 1,
  cudaComputeModeProhibited = 2
};
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly = 2,
  cudaMemAdviseSetPreferredLocation = 3,
  cudaMemAdviseUnsetPreferredLocation = 4,
  cudaMemAdviseSetAccessedBy = 5,
  cudaMemAdviseUnsetAccessedBy = 6
};
enum cudaDeviceP2PAttr {
  cudaDevP2PAttrPerformanceRank = 1,
  cudaDevP2PAttrAccessSupported = 2,
  cudaDevP2PAttrNativeAtomicSupported = 3
};
enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeAccessPolicyWindow = 1,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8
};
enum cudaAccessProperty {
  cudaAccessPropertyNormal = 0,
  cudaAccessPropertyStreaming = 1,
  cudaAccessPropertyPersisting = 2
};
struct cudaAccessPolicyWindow {
  void *base_ptr;
  size_t num_bytes;
  float hitRatio;
  enum cudaAccessProperty hitProp, missProp;
};
typedef union cudaLaunchAttributeValue {
  struct cudaAccessPolicyWindow accessPolicyWindow;
  int cooperative, priority, programmaticStreamSerializationAllowed;
  struct {
    unsigned int x, y, z;
  } clusterDim;
} cudaLaunchAttributeValue, cudaStreamAttrValue, cudaKernelNodeAttrValue;
typedef struct cudaLaunchAttribute_st {
  enum cudaLaunchAttributeID id;
  union cudaLaunchAttributeValue val;
} cudaLaunchAttribute;
#define cudaStreamAttributeAccessPolicyWindow cudaLaunchAttributeAccessPolicyWindow
#define cudaKernelNodeAttributeAccessPolicyWindow cudaLaunchAttributeAccessPolicyWindow
typedef struct cudaLaunchConfig_st {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned int numAttrs;
} cudaLaunchConfig_t;
typedef struct cudaIpcMemHandle_st {
  char reserved[64];
} cudaIpcMemHandle_t;
typedef struct cudaIpcEventHandle_st {
  char reserved[64];
} cudaIpcEventHandle_t;
typedef struct CUfunc_st *cudaFunction_t;
struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
  int maxDynamicSharedSizeBytes, preferredShmemCarveout;
};

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
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device, cudaStream_t stream);
cudaError_t cudaMemcpy2D(void *target, size_t targetPitch, const void *source, size_t sourcePitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *target, size_t targetPitch, const void *source, size_t sourcePitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream VIRTUAL_CUDA_DEFAULT(0));
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags);
cudaError_t cudaHostGetFlags(unsigned int *flags, void *host);
cudaError_t cudaMemset2D(void *target, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset2DAsync(void *target, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream VIRTUAL_CUDA_DEFAULT(0));
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice, int device);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int device, int peer);
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id);
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *cache);
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config);
cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(int target, int scope);
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *properties);
cudaError_t cudaSetValidDevices(int *devices, int count);
cudaError_t cudaSetDeviceFlags(unsigned int flags);
cudaError_t cudaGetDeviceFlags(unsigned int *flags);
cudaError_t cudaThreadSynchronize(void);
cudaError_t cudaThreadExit(void);
cudaError_t cudaCtxResetPersistingL2Cache(void);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *userData,
                                  unsigned int flags);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t bytes VIRTUAL_CUDA_DEFAULT(0),
                                     unsigned int flags VIRTUAL_CUDA_DEFAULT(cudaMemAttachSingle));
cudaError_t cudaStreamCopyAttributes(cudaStream_t target, cudaStream_t source);
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, enum cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue *value);
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, enum cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue *value);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream VIRTUAL_CUDA_DEFAULT(0),
                                     unsigned int flags VIRTUAL_CUDA_DEFAULT(0));
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer);
cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned int flags);
cudaError_t cudaIpcCloseMemHandle(void *pointer);
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *kernel,
                                                                   int blockSize, size_t bytes,
                                                                   unsigned int flags);
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *kernel, int blocks,
                                                      int blockSize);
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *kernel,
                                           const cudaLaunchConfig_t *config);
cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *kernel,
                                                 const cudaLaunchConfig_t *config);
#ifdef __cplusplus
}

// Their typed forms, which take the kernel itself, or a variable of the GPU.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
template <typename... Arguments>
cudaError_t cudaLaunchKernel(void (*kernel)(Arguments...), dim3 grid, dim3 block, void **arguments,
                             size_t bytes = 0, cudaStream_t stream = 0)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename... Arguments>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Arguments...), dim3 grid, dim3 block, void **arguments,
                                        size_t bytes = 0, cudaStream_t stream = 0)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename... Arguments>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Arguments...), cudaFuncAttribute attribute, int value)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename... Arguments>
cudaError_t cudaFuncSetCacheConfig(void (*kernel)(Arguments...), cudaFuncCache cache)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename... Arguments>
cudaError_t cudaFuncSetSharedMemConfig(void (*kernel)(Arguments...), cudaSharedMemConfig config)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename... Arguments>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*kernel)(Arguments...))
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Kernel kernel, int blockSize,
                                                          size_t bytes)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int *gridSize, int *blockSize, Kernel kernel, size_t bytes = 0,
                                               int limit = 0) VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, Kernel kernel, int blockSize,
                                                                   size_t bytes, unsigned int flags)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int *gridSize, int *blockSize, Kernel kernel,
                                                        size_t bytes = 0, int limit = 0,
                                                        unsigned int flags = 0)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Kernel, typename BytesOfBlock>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *gridSize, int *blockSize, Kernel kernel,
                                                           BytesOfBlock bytes, int limit = 0)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, Kernel *kernel, const cudaLaunchConfig_t *config)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, Kernel *kernel, const cudaLaunchConfig_t *config)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                               Arguments &&...arguments) VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Kernel>
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, Kernel kernel)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Symbol>
cudaError_t cudaMemcpyToSymbolAsync(const Symbol &symbol, const void *source, size_t bytes, size_t offset = 0,
                                    cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t stream = 0)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Symbol>
cudaError_t cudaMemcpyFromSymbolAsync(void *target, const Symbol &symbol, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t stream = 0)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Symbol>
cudaError_t cudaGetSymbolSize(size_t *bytes, const Symbol &symbol) VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename T>
cudaError_t cudaMallocPitch(T **pointer, size_t *pitch, size_t width, size_t height)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Symbol>
cudaError_t cudaMemcpyToSymbol(const Symbol &symbol, const void *source, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Symbol>
cudaError_t cudaMemcpyFromSymbol(void *target, const Symbol &symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename Symbol>
cudaError_t cudaGetSymbolAddress(void **pointer, const Symbol &symbol)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
template <typename T>
cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned int flags)
    VIRTUAL_CUDA_BODY(cudaErrorNotSupported);
#pragma GCC diagnostic pop
#endif

#include "cuda_graph_api.h"
#include "cuda_pool_api.h"

#if defined(__CUDA__) && defined(__clang__)
// What clang makes of f<<<grid, block, bytes, stream>>>().
extern "C" unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t bytes = 0,
                                                    cudaStream_t stream = 0);
extern "C" int cudaConfigureCall(dim3 grid, dim3 block, size_t bytes = 0, cudaStream_t stream = 0);
#endif
