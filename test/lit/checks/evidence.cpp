What only a caller can tell is likely where the code around speaks for a mistake, and silent elsewhere.

REQUIRES: torch
RUN: rm -rf %t && split-file %s %t
RUN: not %device-tidy %t/a.cpp %torch | FileCheck %t/a.cpp --implicit-check-not=warning:

//--- a.cpp
#include <torch/torch.h>

// One argument is moved, the one beside it is not.
torch::Tensor loss(torch::Tensor logits, torch::Tensor target, torch::Device device) {
  logits = logits.to(device);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '-' can get 'logits' on 'device' and 'target' on 'target.device()'
  return (logits - target).square().mean();
}
torch::Tensor bothMoved(torch::Tensor logits, torch::Tensor target, torch::Device device) {
  return (logits.to(device) - target.to(device)).square().mean();
}
torch::Tensor together(torch::Tensor a, torch::Tensor b) { return a.mm(b); }

// A tensor made on the CPU, where the code asks for devices.
torch::Tensor weigh(torch::Tensor x) {
  auto bias = torch::zeros({4}, x.options()), weight = torch::ones({4, 4});
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'mm' can get 'x' on 'x.device()' and 'weight' on cpu
  return x.mm(weight) + bias;
}
torch::Tensor forTheHost(torch::Tensor x) { return x.mm(torch::ones({4, 4})); }
torch::Tensor staged(torch::Tensor x) {
  auto weight = torch::ones({4, 4}, torch::TensorOptions().pinned_memory(true));
  return x.options().device().is_cuda() ? x : x.mm(weight);
}

// A member that only ever holds a tensor on the CPU.
class Scaler {
public:
  explicit Scaler(torch::Device device) : device(device), scale(torch::ones({4, 4})) {}
  void reset() { scale = torch::ones({4, 4}); }
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'mm' can get 'x.to(device)' on 'device' and 'scale' on cpu
  torch::Tensor apply(torch::Tensor x) { return x.to(device).mm(scale); }

private:
  torch::Device device;
  torch::Tensor scale;
};
