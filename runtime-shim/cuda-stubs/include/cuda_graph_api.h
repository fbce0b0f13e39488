// Part of the stand-in for CUDA's cuda_runtime_api.h: graphs of work, and how they are captured. Virtual GPUs
// have none: it is for reading.
#pragma once

#include "cuda_runtime_api.h"

typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUuserObject_st *cudaUserObject_t;
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
enum cudaGraphNodeType {
  cudaGraphNodeTypeKernel = 0,
  cudaGraphNodeTypeMemcpy = 1,
  cudaGraphNodeTypeMemset = 2,
  cudaGraphNodeTypeHost = 3,
  cudaGraphNodeTypeGraph = 4,
  cudaGraphNodeTypeEmpty = 5,
  cudaGraphNodeTypeWaitEvent = 6,
  cudaGraphNodeTypeEventRecord = 7,
  cudaGraphNodeTypeConditional = 13
};
enum cudaGraphExecUpdateResult {
  cudaGraphExecUpdateSuccess = 0,
  cudaGraphExecUpdateError = 1,
  cudaGraphExecUpdateErrorTopologyChanged = 2,
  cudaGraphExecUpdateErrorNodeTypeChanged = 3,
  cudaGraphExecUpdateErrorFunctionChanged = 4,
  cudaGraphExecUpdateErrorParametersChanged = 5,
  cudaGraphExecUpdateErrorNotSupported = 6
};
typedef struct cudaGraphExecUpdateResultInfo_st {
  enum cudaGraphExecUpdateResult result;
  cudaGraphNode_t errorNode, errorFromNode;
} cudaGraphExecUpdateResultInfo;
enum cudaGraphInstantiateFlags {
  cudaGraphInstantiateFlagAutoFreeOnLaunch = 1,
  cudaGraphInstantiateFlagUpload = 2,
  cudaGraphInstantiateFlagDeviceLaunch = 4,
  cudaGraphInstantiateFlagUseNodePriority = 8
};
enum cudaGraphDebugDotFlags { cudaGraphDebugDotFlagsVerbose = 1 };
enum cudaStreamUpdateCaptureDependenciesFlags {
  cudaStreamAddCaptureDependencies = 0,
  cudaStreamSetCaptureDependencies = 1
};
enum cudaUserObjectFlags { cudaUserObjectNoDestructorSync = 1 };
enum cudaUserObjectRetainFlags { cudaGraphUserObjectMove = 1 };
struct cudaKernelNodeParams {
  void *func;
  dim3 gridDim, blockDim;
  unsigned int sharedMemBytes;
  void **kernelParams, **extra;
};
struct cudaMemsetParams {
  void *dst;
  size_t pitch;
  unsigned int value, elementSize;
  size_t width, height;
};
struct cudaHostNodeParams {
  cudaHostFn_t fn;
  void *userData;
};

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags);
cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                          unsigned long long flags);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type);
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *parameters);
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *parameters);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *parameters);
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *file, unsigned int flags);
cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *pointer, cudaHostFn_t destroy,
                                 unsigned int count, unsigned int flags);
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count);
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                      unsigned int flags);
#ifdef __cplusplus
}

// Their arguments differ between versions of CUDA.
#define VIRTUAL_CUDA_GRAPH(name)                                                                             \
  template <typename... Arguments> cudaError_t name(Arguments &&...) VIRTUAL_CUDA_BODY(cudaErrorNotSupported)
VIRTUAL_CUDA_GRAPH(cudaGraphInstantiate);
VIRTUAL_CUDA_GRAPH(cudaGraphExecUpdate);
VIRTUAL_CUDA_GRAPH(cudaGraphAddNode);
VIRTUAL_CUDA_GRAPH(cudaGraphAddKernelNode);
VIRTUAL_CUDA_GRAPH(cudaGraphAddMemcpyNode);
VIRTUAL_CUDA_GRAPH(cudaGraphAddMemcpyNode1D);
VIRTUAL_CUDA_GRAPH(cudaGraphAddMemsetNode);
VIRTUAL_CUDA_GRAPH(cudaGraphAddHostNode);
VIRTUAL_CUDA_GRAPH(cudaGraphAddEmptyNode);
VIRTUAL_CUDA_GRAPH(cudaGraphAddChildGraphNode);
VIRTUAL_CUDA_GRAPH(cudaGraphAddDependencies);
VIRTUAL_CUDA_GRAPH(cudaGraphNodeGetDependencies);
VIRTUAL_CUDA_GRAPH(cudaGraphMemcpyNodeSetParams);
VIRTUAL_CUDA_GRAPH(cudaGraphExecMemcpyNodeSetParams);
VIRTUAL_CUDA_GRAPH(cudaGraphExecMemcpyNodeSetParams1D);
VIRTUAL_CUDA_GRAPH(cudaGraphExecHostNodeSetParams);
VIRTUAL_CUDA_GRAPH(cudaGraphExecChildGraphNodeSetParams);
VIRTUAL_CUDA_GRAPH(cudaStreamGetCaptureInfo);
VIRTUAL_CUDA_GRAPH(cudaStreamGetCaptureInfo_v2);
VIRTUAL_CUDA_GRAPH(cudaStreamUpdateCaptureDependencies);
#undef VIRTUAL_CUDA_GRAPH
#endif
