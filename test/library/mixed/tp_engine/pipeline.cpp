#include "comm.h"

#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>

namespace tpe {

struct PipelineOptions {
  int64_t width = 8;
  int64_t classes = 3;
  int stages = 2;
  int first_device = 0;
};

/// Stages on consecutive devices of one process.
class Pipeline {
public:
  explicit Pipeline(const PipelineOptions &options) : options_(options) {
    const auto visible = static_cast<int>(torch::cuda::device_count());
    TORCH_CHECK(options.first_device + options.stages <= visible, "there are only ", visible, " GPUs");
    for (int i = 0; i < options.stages; ++i) {
      devices_.emplace_back(torch::kCUDA, static_cast<c10::DeviceIndex>(options.first_device + i));
      torch::nn::Linear stage(options.width, options.width);
      stage->to(devices_.back());
      stages_.push_back(stage);
    }
    head_ = torch::nn::Linear(options.width, options.classes);
    head_->to(devices_.back());
  }

  torch::Tensor forward(torch::Tensor x) {
    for (size_t i = 0; i < stages_.size(); ++i)
      x = torch::gelu(stages_[i]->forward(x.to(devices_[i])));
    return head_(x);
  }

  torch::Tensor forwardSkip(const torch::Tensor &input) {
    auto skip = input.to(devices_.front());
    auto x = skip;
    for (size_t i = 0; i < stages_.size(); ++i)
      x = torch::gelu(stages_[i]->forward(x.to(devices_[i])));
    return head_(x + skip); // [[device-mixed-op]]
  }

  torch::Tensor forwardResidual(torch::Tensor x) {
    for (size_t i = 0; i < stages_.size(); ++i) {
      x = x.to(devices_[i], /*non_blocking=*/true);
      x = x + torch::gelu(stages_[i]->forward(x));
    }
    return head_(x);
  }

  double loss(const torch::Tensor &input, const torch::Tensor &labels) {
    auto target = labels.to(devices_.front(), torch::kLong);
    auto logits = forward(input);
    return torch::nn::functional::cross_entropy(logits, target).item<double>(); // [[device-loss-input]]
  }

  double evaluate(const torch::Tensor &input, const torch::Tensor &labels) {
    torch::NoGradGuard no_grad;
    auto logits = forward(input);
    auto target = labels.to(logits.device(), torch::kLong);
    auto loss = torch::nn::functional::cross_entropy(logits, target);
    auto hits = logits.argmax(1).eq(target).to(torch::kFloat).mean();
    return (loss + hits).item<double>();
  }

  const std::vector<torch::Device> &devices() const { return devices_; }

private:
  PipelineOptions options_;
  std::vector<torch::Device> devices_;
  std::vector<torch::nn::Linear> stages_;
  torch::nn::Linear head_{nullptr};
};

/// The same model on each device, a part of the batch for each.
class Replicas {
public:
  using Builder = std::function<torch::nn::Linear(torch::Device)>;
  Replicas(std::vector<int> indices, const Builder &build) {
    for (int index : indices) {
      devices_.emplace_back(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
      models_.push_back(build(devices_.back()));
    }
  }

  torch::Tensor predict(const torch::Tensor &batch) {
    const auto outputs = scatterForward(batch);
    return torch::cat(outputs); // [[device-mixed-op]]
  }

  torch::Tensor predictGathered(const torch::Tensor &batch) {
    auto outputs = scatterForward(batch);
    for (auto &output : outputs)
      output = output.to(devices_.front());
    return torch::cat(outputs);
  }

  std::vector<double> means(const torch::Tensor &batch) {
    std::vector<double> result;
    for (const auto &output : scatterForward(batch))
      result.push_back(output.mean().item<double>());
    return result;
  }

private:
  std::vector<torch::Tensor> scatterForward(const torch::Tensor &batch) {
    std::vector<torch::Tensor> outputs;
    const auto chunks = batch.chunk(static_cast<int64_t>(models_.size()));
    for (size_t i = 0; i < chunks.size(); ++i)
      outputs.push_back(models_[i]->forward(chunks[i].to(devices_[i])));
    return outputs;
  }
  std::vector<torch::Device> devices_;
  std::vector<torch::nn::Linear> models_;
};

static void gemm(cublasHandle_t handle, const float *a, const float *b, float *c, int m, int n, int k) {
  const float one = 1.f, zero = 0.f;
  const auto status = cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, n, a, k, &zero, c, n);
  TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "cublasSgemm failed: ", static_cast<int>(status));
}

class GemmService {
public:
  /// On a thread of its own; the caller keeps the operands.
  std::future<torch::Tensor> enqueue(torch::Tensor a, torch::Tensor b) {
    TORCH_CHECK(a.is_cuda() && a.device() == b.device(), "the operands must be on one GPU");
    const c10::cuda::CUDAGuard guard(a.device());
    auto c = torch::empty({a.size(0), b.size(1)}, a.options());
    return std::async(std::launch::async, [a, b, c]() mutable {
      gemm(at::cuda::getCurrentCUDABlasHandle(), a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), // [[device-missing-guard]]
           static_cast<int>(a.size(0)), static_cast<int>(b.size(1)), static_cast<int>(a.size(1)));
      return c;
    });
  }

  std::future<torch::Tensor> enqueueOn(torch::Tensor a, torch::Tensor b) {
    TORCH_CHECK(a.is_cuda() && a.device() == b.device(), "the operands must be on one GPU");
    return std::async(std::launch::async, [a, b] {
      const c10::cuda::CUDAGuard guard(a.device());
      auto c = torch::empty({a.size(0), b.size(1)}, a.options());
      gemm(at::cuda::getCurrentCUDABlasHandle(), a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(),
           static_cast<int>(a.size(0)), static_cast<int>(b.size(1)), static_cast<int>(a.size(1)));
      return c;
    });
  }

  /// With one handle for each device, made when it is needed.
  torch::Tensor multiply(const torch::Tensor &a, const torch::Tensor &b) {
    const c10::cuda::CUDAGuard guard(a.device());
    cublasHandle_t handle = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto &slot = handles_[a.get_device()];
      if (!slot)
        TORCH_CHECK(cublasCreate(&slot) == CUBLAS_STATUS_SUCCESS, "cublasCreate failed");
      handle = slot;
    }
    cublasSetStream(handle, at::cuda::getCurrentCUDAStream());
    auto c = torch::empty({a.size(0), b.size(1)}, a.options());
    gemm(handle, a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), static_cast<int>(a.size(0)),
         static_cast<int>(b.size(1)), static_cast<int>(a.size(1)));
    return c;
  }

private:
  std::mutex mutex_;
  std::map<int, cublasHandle_t> handles_;
};

/// Copies shards to host memory between steps.
class ShardOffloader {
public:
  explicit ShardOffloader(torch::Device device) : device_(device), stream_(c10::cuda::getStreamFromPool(false, device.index())) {}

  void save(const std::string &name, const torch::Tensor &shard) {
    auto &host = host_[name];
    if (!host.defined() || host.sizes() != shard.sizes())
      host = torch::empty(shard.sizes(), torch::TensorOptions().dtype(shard.dtype()).pinned_memory(true));
    const auto source = shard.to(device_).contiguous();
    std::memcpy(host.data_ptr(), source.data_ptr(), source.nbytes()); // [[device-host-access]]
  }

  void saveAsync(const std::string &name, const torch::Tensor &shard) {
    auto &host = host_[name];
    if (!host.defined() || host.sizes() != shard.sizes())
      host = torch::empty(shard.sizes(), torch::TensorOptions().dtype(shard.dtype()).pinned_memory(true));
    const auto source = shard.to(device_).contiguous();
    const c10::cuda::CUDAStreamGuard guard(stream_);
    TPE_CUDA(cudaMemcpyAsync(host.data_ptr(), source.data_ptr(), source.nbytes(), cudaMemcpyDeviceToHost, stream_.stream()));
    stream_.synchronize();
  }

  torch::Tensor restore(const std::string &name) {
    auto found = host_.find(name);
    TORCH_CHECK(found != host_.end(), "no shard called ", name);
    const c10::cuda::CUDAStreamGuard guard(stream_);
    auto shard = found->second.to(device_, /*non_blocking=*/true);
    shard.record_stream(stream_.unwrap());
    return shard;
  }

  /// Lends a batch to the side stream: the lengths are for the host's loop.
  void lend(const torch::Tensor &batch, const std::vector<int64_t> &lengths) {
    auto data = batch.to(device_);
    auto count = torch::tensor(lengths, torch::kLong);
    data.record_stream(stream_.unwrap());
    count.record_stream(stream_.unwrap()); // [[device-kernel-launch]]
    lent_.emplace_back(data, count);
  }

  void lendAll(const std::vector<torch::Tensor> &tensors) {
    for (const auto &tensor : tensors) {
      if (!tensor.is_cuda())
        continue;
      tensor.record_stream(stream_.unwrap());
    }
  }

private:
  torch::Device device_;
  c10::cuda::CUDAStream stream_;
  std::map<std::string, torch::Tensor> host_;
  std::vector<std::pair<torch::Tensor, torch::Tensor>> lent_;
};

torch::Tensor spareBuffer(int64_t bytes) {
  TORCH_CHECK(torch::cuda::is_available(), "GPUs are needed");
  const torch::Device spare(torch::kCUDA, static_cast<c10::DeviceIndex>(torch::cuda::device_count())); // [[device-lost-index]]
  return torch::empty({bytes}, torch::TensorOptions().dtype(torch::kByte).device(spare));
}

torch::Tensor scratchBuffer(int64_t bytes, int64_t request) {
  const auto count = static_cast<int64_t>(torch::cuda::device_count());
  TORCH_CHECK(count > 0, "GPUs are needed");
  const torch::Device device(torch::kCUDA, static_cast<c10::DeviceIndex>(request % count));
  return torch::empty({bytes}, torch::TensorOptions().dtype(torch::kByte).device(device));
}

} // namespace tpe

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace tpe;
static ncclUniqueId newId() { ncclUniqueId id; ncclGetUniqueId(&id); return id; }
template <typename F> static void gradients(F f) {
  auto id = newId();
  dtl::ranks(2, [&](int r) { GradientCollective c; c.open(LaunchInfo::fromEnvironment(), id); f(c, r); });
}
void stream_collective_bad() { auto id = newId(); dtl::ranks(2, [&](int r) { StreamCollective c; c.open(LaunchInfo::fromEnvironment(), id); auto t = dtl::gpu({4}, r); c.allReduce(t); }); }
void gradient_collective_ok() { gradients([](GradientCollective &c, int r) { auto t = dtl::gpu({4, 2}, r).t(); c.allReduce(t); }); }
void gather_counts_bad() { gradients([](GradientCollective &c, int r) { c.gatherCounts({1, 2}); }); }
void gather_lengths_ok() { gradients([](GradientCollective &c, int r) { c.gatherLengths({1, 2}); }); }
void reduce_scatter_ok() { gradients([](GradientCollective &c, int r) { c.reduceScatter(dtl::gpu({4}, r)); }); }
void broadcast_ok() { gradients([](GradientCollective &c, int r) { std::vector<torch::Tensor> p{dtl::gpu({4}, r)}; c.broadcast(p, 0); }); }
void metric_bad() { auto id = newId(); dtl::ranks(2, [&](int) { MetricReducer m(3); m.open(id); m.reduce(); }); }
void replica_bad() { auto id = newId(); dtl::ranks(2, [&](int) { ReplicaGroup g; g.join(id); }); }
void step_marker_bad() { StepMarker t(dtl::dev(1)); t.mark(); t.wait(); }
void lazy_timer_ok() { LazyTimer t(dtl::dev(1)); t.start(); t.stop(); }
void forward_ok() { Pipeline(PipelineOptions{}).forward(torch::rand({2, 8})); }
void forward_skip_bad() { Pipeline(PipelineOptions{}).forwardSkip(torch::rand({2, 8})); }
void forward_residual_ok() { Pipeline(PipelineOptions{}).forwardResidual(torch::rand({2, 8})); }
void loss_bad() { Pipeline(PipelineOptions{}).loss(torch::rand({2, 8}), torch::zeros({2})); }
void evaluate_ok() { Pipeline(PipelineOptions{}).evaluate(torch::rand({2, 8}), torch::zeros({2})); }
static Replicas replicas() { return Replicas({0, 1}, [](torch::Device d) { torch::nn::Linear l(8, 2); l->to(d); return l; }); }
void predict_bad() { replicas().predict(torch::rand({4, 8})); }
void predict_gathered_ok() { replicas().predictGathered(torch::rand({4, 8})); }
void means_ok() { replicas().means(torch::rand({4, 8})); }
void enqueue_bad() { GemmService().enqueue(dtl::gpu({2, 3}), dtl::gpu({3, 2})).get(); }
void enqueue_on_ok() { GemmService().enqueueOn(dtl::gpu({2, 3}), dtl::gpu({3, 2})).get(); }
void multiply_ok() { GemmService s; for (int i = 0; i < 3; ++i) s.multiply(dtl::gpu({2, 3}, i), dtl::gpu({3, 2}, i)); }
void save_bad() { ShardOffloader(dtl::dev(1)).save("a", dtl::gpu({4})); }
void save_async_ok() { ShardOffloader o(dtl::dev(1)); o.saveAsync("a", dtl::gpu({4})); o.restore("a"); }
void lend_bad() { ShardOffloader(dtl::dev(1)).lend(dtl::gpu({4}), {1}); }
void lend_all_ok() { ShardOffloader(dtl::dev(1)).lendAll({dtl::gpu({4}), torch::rand({2})}); }
void spare_bad() { spareBuffer(16); }
void scratch_ok() { scratchBuffer(16, 9); }
DT_MAIN(stream_collective_bad, gradient_collective_ok, gather_counts_bad, gather_lengths_ok, reduce_scatter_ok, broadcast_ok,
        metric_bad, replica_bad, step_marker_bad, lazy_timer_ok, forward_ok, forward_skip_bad, forward_residual_ok, loss_bad,
        evaluate_ok, predict_bad, predict_gathered_ok, means_ok, enqueue_bad, enqueue_on_ok, multiply_ok, save_bad,
        save_async_ok, lend_bad, lend_all_ok, spare_bad, scratch_ok)
#endif
