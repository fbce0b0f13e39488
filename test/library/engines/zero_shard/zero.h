#pragma once

#include <torch/torch.h>

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdlib>
#include <string>
#include <vector>

#define NCCL_OK(call)                                                          \
  do {                                                                         \
    const ncclResult_t zs_result_ = (call);                                    \
    TORCH_CHECK(zs_result_ == ncclSuccess, #call, ": ", ncclGetErrorString(zs_result_)); \
  } while (0)
#define CUDA_OK(call) TORCH_CHECK((call) == cudaSuccess, #call " failed")

namespace zero {

inline int env_int(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : fallback;
}

struct World {
  int rank = 0, size = 1, local_rank = 0;
  ncclUniqueId id;
  static World from_env(const ncclUniqueId& id);
};

// The communicator of a process, its stream and the collectives on it.
class Group {
 public:
  static Group open(const World& world);
  static Group open_with_side_stream(const World& world);
  void rebuild(const World& world);
  void close();

  void all_reduce(torch::Tensor& t) const;
  void broadcast(torch::Tensor& t, int root) const;
  torch::Tensor all_gather(const torch::Tensor& shard) const;
  torch::Tensor reduce_scatter(const torch::Tensor& full) const;
  int64_t agree_on_step(int64_t step) const;
  bool any_overflow(const std::vector<torch::Tensor>& grads) const;
  double mean_loss(double loss) const;
  int size() const { return size_; }
  int rank() const { return rank_; }
  cudaStream_t stream() const { return stream_; }

 private:
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  int rank_ = 0, size_ = 1;
};

struct AdamOptions {
  float lr = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f;
};

// Kernels' front ends.
void adam_step(torch::Tensor& param, const torch::Tensor& grad, torch::Tensor& m, torch::Tensor& v,
               const AdamOptions& options);
void unscale(const std::vector<torch::Tensor>& grads, float inverse);
void unscale_each(const std::vector<torch::Tensor>& grads, float inverse);
torch::Tensor pack_bucket(const std::vector<torch::Tensor>& tensors);

// One rank's part of the state of the optimizer.
class ShardedAdam {
 public:
  ShardedAdam(const Group& group, std::vector<torch::Tensor> params, AdamOptions options);
  void step();
  void zero_grad();
  double clip(double max_norm);
  double clip_global(double max_norm);
  void offload();
  void reload();
  void save(const std::string& file) const;
  void resume(const std::string& file);
  void resume_mapped(const std::string& file);
  void decay_moments(double factor);
  void blend(double weight);
  std::vector<float> sample(int64_t count) const;

 private:
  torch::Device device() const { return params_.front().device(); }
  const Group& group_;
  std::vector<torch::Tensor> params_;
  AdamOptions options_;
  torch::Tensor flat_, m_, v_, snapshot_;
};

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(int64_t width);
  torch::Tensor forward(const torch::Tensor& x);
  torch::nn::Linear up{nullptr}, down{nullptr};
};
TORCH_MODULE(Block);

torch::Tensor train_first_step(const World& world, const Group& group, Block& block);
torch::Tensor train_step(const World& world, const Group& group, Block& block);

} // namespace zero
