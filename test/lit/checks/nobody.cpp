// What a program with a main does not call is for nobody; the same in a library is for whoever links it.
// REQUIRES: torch
// RUN: %device-tidy %s -- %torch-flags -DPROGRAM
// RUN: not %device-tidy %s -- %torch-flags | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

torch::Tensor onGpu(const torch::Tensor &x) { return x.is_cuda() ? x : x.to(torch::kCUDA); }

torch::Tensor shifted(const torch::Tensor &x) {
  const auto offsets = torch::rand({3});
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '+' can get 'x' on 'x.device()' and 'offsets' on cpu
  return x + offsets;
}

#ifdef PROGRAM
int main() { onGpu(torch::rand({3})); }
#endif
