// REQUIRES: torch
// RUN: not %device-tidy --checks=device-mixed-op %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

torch::Tensor perturbBad(int64_t n) {
  torch::Tensor x = torch::zeros({n, 3}, torch::kCUDA);
  torch::Tensor noise = torch::randn({n, 3});
  return x + noise;
  // CHECK:      :[[@LINE-1]]:12: warning: '+' gets 'x' on cuda and 'noise' on cpu [device-mixed-op]
  // CHECK-NEXT: [[@LINE-2]] |   return x + noise;
  // CHECK-NEXT: {{^}}      |          ~ ^ ~~~~~
  // CHECK:      :[[@LINE-6]]:{{.*}} note: {{.*}}created on cuda here
  // CHECK:      :[[@LINE-6]]:{{.*}} note: {{.*}}created on cpu here
  // CHECK:      :[[@LINE-6]]:{{.*}} note: move it first: noise.to(x.device())
}

torch::Tensor perturbGood(int64_t n) {
  torch::Tensor x = torch::zeros({n, 3}, torch::kCUDA);
  torch::Tensor noise = torch::randn({n, 3}, x.options());
  return x + noise;
}

torch::Tensor addTo(const torch::Tensor &a, const torch::Tensor &b) {
  // CHECK: :[[@LINE+1]]:{{.*}} warning: '+' gets 'a' on cuda:1 and 'b' on cuda:0 [device-mixed-op]
  return a + b;
}

torch::Tensor callerBad() {
  auto a = torch::ones({4}, torch::Device(torch::kCUDA, 1));
  auto b = torch::ones({4}, torch::Device(torch::kCUDA, 0));
  // CHECK: :[[@LINE+1]]:{{.*}} note: reached from this call of 'addTo'
  return addTo(a, b);
}
