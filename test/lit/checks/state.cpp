// REQUIRES: torch
// What objects keep to themselves, copies of modules, and pointers that are asked where they lead.
// RUN: not %device-tidy %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

#include <cuda_runtime_api.h>

#include <memory>

class Sampler {
public:
  Sampler(torch::Tensor weights, torch::Device device) : weights_(weights.to(device)) {}
  torch::Tensor draw() const { return torch::multinomial(weights_, 4, true); }

private:
  torch::Tensor weights_;
};

struct Batch {
  torch::Tensor input, target;
};

class Trainer {
public:
  explicit Trainer(torch::Device device) : device_(device), table_(8, 2), fc_(2, 2) {
    table_->to(device_);
    fc_->to(device_);
  }
  // Where the sampler's tensors are is up to the sampler.
  torch::Tensor sampled(const Sampler &sampler, torch::Tensor ids) {
    return table_->forward(ids.to(device_)) + table_->forward(sampler.draw());
  }
  // Those of a batch are passed like others.
  torch::Tensor loss(const Batch &batch) {
    auto output = fc_->forward(batch.input.to(device_));
    // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: loss 'mse_loss' can get 'output' on 'device' and 'batch.target' on 'batch.target.device()' [device-loss-input]
    return torch::mse_loss(output, batch.target);
  }

private:
  torch::Device device_;
  torch::nn::Embedding table_;
  torch::nn::Linear fc_;
};

struct Scale : torch::nn::Module {
  torch::Tensor factor;
  void setUp() { factor = register_parameter("factor", torch::full({1}, 2.f)); }
};

class Scaled {
public:
  explicit Scaled(torch::Device device) : device_(device) {
    Scale scale;
    scale.setUp();
    scale_ = std::make_shared<Scale>(scale);
  }
  torch::Tensor apply(torch::Tensor x) {
    // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'matmul' can get 'x.to(device_)' on 'device' and 'scale_->factor' on cpu
    return torch::matmul(x.to(device_), scale_->factor);
  }

private:
  torch::Device device_;
  std::shared_ptr<Scale> scale_;
};

static int gpuOf(const void *memory) {
  cudaPointerAttributes attributes;
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess)
    return -1;
  return attributes.type == cudaMemoryTypeDevice ? attributes.device : -1;
}

static torch::Tensor wrapped(float *memory) {
  const int gpu = gpuOf(memory);
  return torch::from_blob(memory, {4}, gpu < 0 ? torch::TensorOptions() : torch::TensorOptions().device(torch::kCUDA, gpu));
}

void wraps() {
  auto there = torch::ones({4}, torch::kCUDA), here = torch::ones({4});
  wrapped(there.data_ptr<float>());
  wrapped(here.data_ptr<float>());
}

struct Reader {
  float first;
  explicit Reader(const float *memory) : first(memory[0]) {}
};

void reads() {
  auto there = torch::ones({4}, torch::kCUDA);
  // CHECK: [[@LINE-5]]:{{[0-9]+}}: warning: 'memory[0]' works on memory of cpu and gets that of 'there' on cuda [device-host-access]
  std::make_shared<Reader>(there.data_ptr<float>());
}
