#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <torch/torch.h>

#include <cstdlib>
#include <vector>

#define NCCL_CHECK(call)                                                               \
  do {                                                                                 \
    ncclResult_t result_ = (call);                                                     \
    TORCH_CHECK(result_ == ncclSuccess, "NCCL: ", ncclGetErrorString(result_));        \
  } while (0)

namespace pllm {

inline int env_int(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : fallback;
}

// Work that must not wait for the default stream.
class SideQueue {
 public:
  SideQueue() {
    cudaStreamCreate(&queue_); // [[device-rank-collision]]
  }
  ~SideQueue() { cudaStreamDestroy(queue_); }
  SideQueue(const SideQueue&) = delete;

 protected:
  cudaStream_t queue_ = nullptr;
};

class TensorGroup : public SideQueue {
 public:
  TensorGroup(const ncclUniqueId& id, int rank, int world, int local_rank) : rank_(rank), world_(world) {
    cudaSetDevice(local_rank);
    NCCL_CHECK(ncclCommInitRank(&comm_, world, id, rank));
  }
  ~TensorGroup() { ncclCommDestroy(comm_); }

  void all_reduce(torch::Tensor& partial) {
    NCCL_CHECK(ncclAllReduce(partial.data_ptr<float>(), partial.data_ptr<float>(), partial.numel(), ncclFloat, ncclSum,
                             comm_, queue_));
    cudaStreamSynchronize(queue_);
  }

 private:
  ncclComm_t comm_ = nullptr;
  int rank_, world_;
};

// Experts are exchanged with a communicator of their own.
class ExpertGroup {
 public:
  ExpertGroup(const ncclUniqueId& id, int rank, int world);
  ~ExpertGroup() { ncclCommDestroy(comm_); }
  void exchange(const torch::Tensor& routed, torch::Tensor& received);

 private:
  void bind();
  ncclComm_t comm_ = nullptr;
  int local_rank_ = 0, world_;
};

class Worker {
 public:
  Worker(int rank, int world, int64_t width) : rank_(rank), world_(world), width_(width) {}
  ~Worker();
  void initialize(const ncclUniqueId& id);
  torch::Tensor row_parallel(const torch::Tensor& x);
  torch::Tensor gather_columns(const torch::Tensor& x);
  torch::Tensor gather_logits(const torch::Tensor& x);
  std::vector<int> broadcast_lengths(const std::vector<int>& lengths);
  torch::Tensor broadcast_tokens(const std::vector<int>& tokens);
  void send_hidden(const torch::Tensor& hidden);
  torch::Tensor receive_hidden(int64_t rows);
  const torch::Device& device() const { return device_; }

 private:
  void allocate();
  int rank_, world_, local_rank_ = 0;
  int64_t width_;
  torch::Device device_{torch::kCPU};
  torch::Tensor weight_, gathered_, columns_;
  ncclComm_t comm_ = nullptr;
  cudaEvent_t done_ = nullptr;
};

} // namespace pllm
