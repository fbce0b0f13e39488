// Tensor and pipeline parallelism in one process for each GPU, or in one process with many.
#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <torch/torch.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#define TPE_CUDA(call)                                                                                       \
  do {                                                                                                       \
    const cudaError_t tpe_status = (call);                                                                   \
    TORCH_CHECK(tpe_status == cudaSuccess, #call " failed: ", cudaGetErrorString(tpe_status));               \
  } while (0)

#define TPE_NCCL(call)                                                                                       \
  do {                                                                                                       \
    const ncclResult_t tpe_result = (call);                                                                  \
    TORCH_CHECK(tpe_result == ncclSuccess, #call " failed: ", ncclGetErrorString(tpe_result));               \
  } while (0)

namespace tpe {

struct LaunchInfo {
  int rank = 0, world = 1, local_rank = 0;
  static LaunchInfo fromEnvironment() {
    auto read = [](const char *name, int fallback) {
      const char *text = std::getenv(name);
      return text && *text ? std::atoi(text) : fallback;
    };
    return {read("RANK", 0), read("WORLD_SIZE", 1), read("LOCAL_RANK", 0)};
  }
  torch::Device device() const { return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(local_rank)); }
};

ncclDataType_t dataType(const torch::Tensor &tensor);

/// Collectives on a stream of their own.
class Collective {
public:
  virtual ~Collective() = default;
  virtual void open(const LaunchInfo &info, const ncclUniqueId &id) = 0;
  virtual void allReduce(torch::Tensor &tensor) = 0;
};

class StreamCollective : public Collective {
public:
  ~StreamCollective() override;
  void open(const LaunchInfo &info, const ncclUniqueId &id) override;
  void allReduce(torch::Tensor &tensor) override;

private:
  cudaStream_t stream_ = nullptr;
  ncclComm_t comm_ = nullptr;
  LaunchInfo info_;
};

class GradientCollective : public Collective {
public:
  ~GradientCollective() override;
  void open(const LaunchInfo &info, const ncclUniqueId &id) override;
  void allReduce(torch::Tensor &tensor) override;
  torch::Tensor gatherCounts(const std::vector<int64_t> &counts);
  torch::Tensor gatherLengths(const std::vector<int64_t> &lengths);
  torch::Tensor reduceScatter(const torch::Tensor &gradient);
  void broadcast(std::vector<torch::Tensor> &parameters, int root);

private:
  ncclComm_t comm_ = nullptr;
  LaunchInfo info_;
  torch::Device device_ = torch::kCPU;
};

class MetricReducer {
public:
  explicit MetricReducer(size_t slots) : slots_(static_cast<int64_t>(slots)) {}
  void open(const ncclUniqueId &id);
  void reduce();

private:
  int64_t slots_;
  torch::Tensor buffer_;
  ncclComm_t comm_ = nullptr;
};

class ReplicaGroup {
public:
  void join(const ncclUniqueId &id);
  void leave();

private:
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

/// Says when the work of a step is done.
class StepMarker {
public:
  explicit StepMarker(torch::Device device) : device_(device) {
    TPE_CUDA(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
  }
  ~StepMarker() { cudaEventDestroy(done_); }
  void mark();
  void wait() const;

private:
  torch::Device device_;
  cudaEvent_t done_ = nullptr;
};

/// Milliseconds between two points of a device's work.
class LazyTimer {
public:
  explicit LazyTimer(torch::Device device) : device_(device) {}
  void start();
  float stop();

private:
  torch::Device device_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

} // namespace tpe
