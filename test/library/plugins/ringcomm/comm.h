#pragma once

#include <torch/torch.h>

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#define RC_NCCL(call)                                                   \
  do {                                                                  \
    const ncclResult_t rc_status = (call);                              \
    TORCH_CHECK(rc_status == ncclSuccess, ncclGetErrorString(rc_status)); \
  } while (0)

namespace rc {

inline int env_int(const char* name, int fallback) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : fallback;
}

struct Topology {
  int rank = 0, world = 1, local_rank = 0;
  static Topology from_environment() {
    return {env_int("RANK", 0), env_int("WORLD_SIZE", 1), env_int("LOCAL_RANK", 0)};
  }
};

/// One communicator and the stream that it works on.
class Communicator {
 public:
  Communicator(const Topology& topology, const ncclUniqueId& id);
  ~Communicator();
  Communicator(const Communicator&) = delete;

  void all_reduce(at::Tensor& tensor);
  void broadcast(at::Tensor& tensor, int root);
  at::Tensor all_gather(const at::Tensor& tensor);
  at::Tensor reduce_scatter(const at::Tensor& tensor);
  double mean_of(double value);
  int64_t agreed_step(int64_t step);
  const at::Device& device() const { return device_; }
  const Topology& topology() const { return topology_; }
  cudaStream_t stream() const { return stream_; }

 private:
  Topology topology_;
  at::Device device_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

/// An early version, which dashboards still use.
class LegacyGroup {
 public:
  void init(const Topology& topology, const ncclUniqueId& id);
  void barrier();

 private:
  cudaStream_t stream_ = nullptr;
  ncclComm_t comm_ = nullptr;
  at::Tensor token_;
};

/// Gradients in flat buckets.
class Bucket {
 public:
  Bucket(std::vector<at::Tensor> parameters, const at::Device& device);
  void pack();
  void unpack(double scale);
  at::Tensor& flat() { return flat_; }

 private:
  std::vector<at::Tensor> parameters_;
  at::Tensor flat_;
};

struct SgdState {
  at::Tensor momentum;
  at::Tensor residual; // of the compression
};

class ShardedSgd {
 public:
  ShardedSgd(std::vector<at::Tensor> parameters, std::shared_ptr<Communicator> comm, double lr, double momentum);
  void step();
  void step_compressed(double keep);
  double grad_norm() const;
  double clip(double limit);
  void load_state(const std::map<std::string, at::Tensor>& state);
  std::map<std::string, at::Tensor> state() const;

 private:
  std::vector<at::Tensor> parameters_;
  std::shared_ptr<Communicator> comm_;
  double lr_, momentum_;
  std::vector<SgdState> states_;
};

// fused.cu
void fused_momentum(at::Tensor& parameter, const at::Tensor& grad, at::Tensor& momentum, double lr, double mu);
void fused_momentum_list(std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& grads,
                         std::vector<at::Tensor>& momenta, double lr, double mu);
at::Tensor sign_compress(const at::Tensor& grad, at::Tensor& residual);
at::Tensor nonfinite(const std::vector<at::Tensor>& grads);
at::Tensor gram(const at::Tensor& a);

} // namespace rc
