#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <torch/torch.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#define NCCL_CHECK(cmd)                                                                                      \
  do {                                                                                                       \
    ncclResult_t nccl_result = (cmd);                                                                        \
    TORCH_CHECK(nccl_result == ncclSuccess, "NCCL error in ", __FILE__, ":", __LINE__, ": ",                 \
                ncclGetErrorString(nccl_result));                                                            \
  } while (0)

namespace ncclgroup {

struct RankInfo {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
};

RankInfo rank_from_env();

struct CommOptions {
  RankInfo ranks;
  ncclUniqueId id{};
  bool high_priority = false;
  int64_t bucket_bytes = 4 << 20;
};

ncclDataType_t nccl_type(at::ScalarType type);

/// One communicator of one process, with a stream and an event of its own.
class Communicator {
public:
  explicit Communicator(CommOptions options);
  ~Communicator();

  void all_reduce(torch::Tensor &tensor);
  void broadcast(torch::Tensor &tensor, int root);
  void barrier();
  void barrier_on(at::cuda::CUDAStream stream);
  torch::Tensor all_gather(const torch::Tensor &tensor);
  torch::Tensor reduce_scalar(double value);
  void wait() const;

  int rank() const { return options_.ranks.rank; }
  int size() const { return options_.ranks.world_size; }
  torch::Device device() const { return device_; }
  cudaStream_t stream() const { return stream_; }

private:
  CommOptions options_;
  torch::Device device_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t done_ = nullptr;
};

/// A pair of communicators for tensor and data parallelism that share a stream.
class HybridComm {
public:
  void init(const RankInfo &ranks, const ncclUniqueId &tp_id, const ncclUniqueId &dp_id, int tp_size);
  void init_single(const RankInfo &ranks, const ncclUniqueId &id);
  void destroy();
  ncclComm_t tp = nullptr, dp = nullptr;
  cudaStream_t side_stream = nullptr;
};

/// Gradients, flattened into buckets of some size.
class GradientBucketer {
public:
  GradientBucketer(std::shared_ptr<Communicator> comm, std::vector<torch::Tensor> parameters, int64_t bucket_bytes);

  void reduce();
  void reduce_with_residual();
  std::vector<char> serialize_bucket(size_t index) const;
  std::vector<char> snapshot_bucket(size_t index) const;
  int64_t largest_parameter() const;
  torch::Tensor norms() const;

private:
  torch::Tensor flatten(size_t bucket) const;
  void unflatten(size_t bucket, const torch::Tensor &flat);

  std::shared_ptr<Communicator> comm_;
  std::vector<torch::Tensor> parameters_;
  std::vector<std::vector<size_t>> buckets_;
  std::vector<torch::Tensor> residuals_;
};

torch::Tensor make_workspace(int64_t bytes);
torch::Tensor make_workspace_on_rank(int64_t bytes);
ncclComm_t connect(const RankInfo &ranks, const ncclUniqueId &id);
double time_all_reduce(ncclComm_t comm, torch::Tensor tensor, int iterations);
double time_broadcast(ncclComm_t comm, torch::Tensor tensor, int iterations);
std::vector<int64_t> split_sizes(const torch::Tensor &counts, int world_size);
std::vector<int64_t> split_offsets(const torch::Tensor &counts, int world_size);

} // namespace ncclgroup
