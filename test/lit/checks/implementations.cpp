// Who makes an object behind an interface may choose its class by the device: an implementation for the host
// meets the memory of the host.
// REQUIRES: torch
// RUN: not %device-tidy %s -- %torch-flags | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

#include <memory>

struct Neighbors {
  virtual ~Neighbors() = default;
  virtual void count(const float *positions, int *counts, int n) = 0;
  virtual float largest(const torch::Tensor &x) = 0;
};

struct HostNeighbors : Neighbors {
  void count(const float *positions, int *counts, int n) override {
    for (int i = 0; i < n; ++i)
      counts[i] = positions[i] > 0;
  }
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'x.data_ptr<float>()[0]' works on memory of cpu and gets that of 'x' on cuda
  float largest(const torch::Tensor &x) override { return x.data_ptr<float>()[0]; }
};

void countOnGpu(const float *positions, int *counts, int n);
struct GpuNeighbors : Neighbors {
  void count(const float *positions, int *counts, int n) override { countOnGpu(positions, counts, n); }
  float largest(const torch::Tensor &x) override { return x.max().item<float>(); }
};

class Calculator {
public:
  explicit Calculator(torch::Device device) : device_(device) {
    if (device_.is_cuda())
      neighbors_ = std::make_shared<GpuNeighbors>();
    else
      neighbors_ = std::make_shared<HostNeighbors>();
  }
  torch::Tensor compute(torch::Tensor positions) {
    positions = positions.to(device_);
    auto counts = torch::empty({4}, torch::dtype(torch::kInt).device(device_));
    neighbors_->count(positions.data_ptr<float>(), counts.data_ptr<int>(), 4);
    return counts;
  }

  torch::Device device_;
  std::shared_ptr<Neighbors> neighbors_;
};

torch::Tensor computeWith(Calculator &calculator, torch::Tensor positions) {
  positions = positions.to(calculator.device_);
  auto counts = torch::empty({4}, torch::dtype(torch::kInt).device(calculator.device_));
  calculator.neighbors_->count(positions.data_ptr<float>(), counts.data_ptr<int>(), 4);
  return counts;
}

// Every class gets memory of a GPU here.
float largestOf(Neighbors &neighbors) { return neighbors.largest(torch::rand({4}, torch::kCUDA)); }

// Nothing is known of what a library hands out.
std::shared_ptr<Neighbors> findNeighbors(const char *name);
torch::Tensor computeByName(torch::Tensor positions) {
  positions = positions.to(torch::Device(std::getenv("DEVICE")));
  auto counts = torch::empty({4}, torch::dtype(torch::kInt).device(positions.device()));
  for (int i = 0; i < 4; ++i)
    findNeighbors("fast")->count(positions.data_ptr<float>(), counts.data_ptr<int>(), 4);
  return counts;
}
