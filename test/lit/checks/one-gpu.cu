// A program that puts everything on "cuda" and has no other part uses the first GPU alone: a launch without a
// guard never fails there.
// REQUIRES: torch
// RUN: %device-tidy --level=likely %s -- nvcc %torch-flags
// RUN: not %device-tidy --level=likely %s -- nvcc %torch-flags -DSEVERAL | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

#include <ATen/cuda/CUDAContext.h>

__global__ void scale(const float *x, float *y, int n) {}

// Something outside calls it, or code that the analysis does not see.
torch::Tensor twice(const torch::Tensor &x) {
  auto y = torch::empty_like(x);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'scale' runs on the current GPU and works on 'x'
  scale<<<1, 4>>>(x.data_ptr<float>(), y.data_ptr<float>(), 4);
  return y;
}

// A thread of autograd has made the GPU of the gradient current.
class Scale : public torch::autograd::Function<Scale> {
public:
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext *,
                                                 torch::autograd::variable_list gradients) {
    auto gradient = torch::empty_like(gradients[0]);
    scale<<<1, 4>>>(gradients[0].data_ptr<float>(), gradient.data_ptr<float>(), 4);
    return {gradient};
  }
};

int main(int argc, char **argv) {
  auto x = torch::rand({4}, torch::device(torch::kCUDA));
#ifdef SEVERAL
  x = x.to(torch::Device(torch::kCUDA, argc));
#endif
}
