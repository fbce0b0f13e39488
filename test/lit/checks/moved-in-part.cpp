// REQUIRES: torch
// RUN: not %device-tidy %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

// Objects with a to() of their own that moves some of their members.

struct Batch {
  torch::Tensor x, y, mask;
  Batch to(torch::Device device) const { return Batch{x.to(device), y.to(device), mask}; }
};

torch::Tensor masked(const Batch &batch) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '*' can get 'batch.x' on 'batch.x.device()' and 'batch.mask' on 'batch.mask.device()'
  return batch.x * batch.mask;
}

torch::Tensor paired(const Batch &batch) { return batch.x - batch.y; }

class Kept {
public:
  Kept(torch::Tensor x, torch::Tensor mask, torch::Tensor scale) : x(x), mask(mask), scale(scale) {}

  void to(torch::Device device) {
    x = x.to(device);
    scale = scale.to(device);
  }

  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '*' can get 'x' on 'device' and 'mask' on 'mask.device() before it changed'
  torch::Tensor masked() const { return x * mask; }
  torch::Tensor scaled() const { return x * scale; }

private:
  torch::Tensor x, mask, scale;
};

struct Whole {
  torch::Tensor x, y;
  void to(torch::Device device) {
    for (auto *each : {&x, &y})
      *each = each->to(device);
  }
};

torch::Tensor product(const Whole &whole) { return whole.x * whole.y; }
