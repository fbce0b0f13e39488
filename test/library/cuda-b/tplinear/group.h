#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <cublas_v2.h>
#include <nccl.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

namespace tp {

/// All GPUs of one process: a communicator, a stream and a cuBLAS handle for each.
class Group {
public:
  struct Options {
    std::vector<int> devices;
    size_t workspace_bytes = 1 << 16;
  };

  explicit Group(Options options);
  ~Group();
  Group(const Group &) = delete;
  Group &operator=(const Group &) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }
  torch::Device device(int rank) const { return ranks_.at(rank).device; }
  cublasHandle_t blas(int rank) const { return ranks_.at(rank).blas; }
  const c10::cuda::CUDAStream &stream(int rank) const { return ranks_.at(rank).stream; }

  void each(const std::function<void(int)> &work) const;
  void all_reduce(std::vector<torch::Tensor> &parts) const;
  std::vector<torch::Tensor> all_gather(const std::vector<torch::Tensor> &parts) const;
  std::vector<torch::Tensor> all_gather_metadata(const std::vector<int64_t> &values) const;
  std::vector<torch::Tensor> broadcast(const torch::Tensor &value) const;
  float elapsed(const std::function<void()> &work) const;
  std::vector<float> elapsed_each(const std::function<void(int)> &work) const;

private:
  struct Rank {
    torch::Device device;
    c10::cuda::CUDAStream stream;
    ncclComm_t comm = nullptr;
    cublasHandle_t blas = nullptr;
    torch::Tensor workspace;
  };
  std::vector<Rank> ranks_;
};

/// The rank of one process of several.
struct ProcessRank {
  int rank = 0, world = 1, local_rank = 0;
  cublasHandle_t blas = nullptr;
  ncclComm_t comm = nullptr;
  torch::Tensor workspace;

  void setup(const ncclUniqueId &id);
  void setup_lazy(const ncclUniqueId &id);
  void teardown();
};

ProcessRank process_rank();

/// y = x W^T + b, the rows of W spread over the group.
class ColumnParallelLinear {
public:
  ColumnParallelLinear(std::shared_ptr<Group> group, const torch::Tensor &weight, const torch::Tensor &bias);

  std::vector<torch::Tensor> forward(const std::vector<torch::Tensor> &x) const;
  std::vector<torch::Tensor> forward_blas(const std::vector<torch::Tensor> &x) const;
  torch::Tensor gathered(const std::vector<torch::Tensor> &x) const;
  torch::Tensor weight() const;

private:
  std::shared_ptr<Group> group_;
  std::vector<torch::Tensor> weights_, biases_;
};

/// The columns of W are spread, partial products are summed.
class RowParallelLinear {
public:
  RowParallelLinear(std::shared_ptr<Group> group, const torch::Tensor &weight, const torch::Tensor &bias);

  std::vector<torch::Tensor> forward(const std::vector<torch::Tensor> &x) const;
  std::vector<torch::Tensor> forward_fused(const std::vector<torch::Tensor> &x) const;
  std::vector<torch::Tensor> forward_blas(const std::vector<torch::Tensor> &x) const;
  std::vector<float> column_norms(int rank) const;
  double bias_norm() const;

private:
  std::shared_ptr<Group> group_;
  std::vector<torch::Tensor> weights_;
  torch::Tensor bias_;
};

} // namespace tp
