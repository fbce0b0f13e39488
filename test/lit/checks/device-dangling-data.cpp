// REQUIRES: torch
// RUN: not %device-tidy --checks=device-dangling-data %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

#include <cstring>

float kept(torch::Tensor x) {
  // CHECK: [[@LINE+2]]:{{[0-9]+}}: warning: 'values' points into 'x.to(torch::kCPU)', a temporary that ends with this statement [device-dangling-data]
  // CHECK: note: keep the tensor while its memory is used: 'auto host = x.to(torch::kCPU);'
  const float *values = x.to(torch::kCPU).data_ptr<float>();
  return values[0];
}

float behind(torch::Tensor x) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'last' points into 'x.cpu().view(-1)'
  const float *last = x.cpu().view(-1).data_ptr<float>() + 3;
  return *last;
}

float computed(torch::Tensor x) {
  float *values;
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'values' points into '(x + 1)'
  values = (x + 1).data_ptr<float>();
  return *values;
}

// CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'x.cpu().data_ptr<float>()' points into 'x.cpu()'
const float *returned(torch::Tensor x) { return x.cpu().data_ptr<float>(); }

struct Frame {
  float *pixels = nullptr;
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'pixels' points into 'x.cpu()'
  void take(const torch::Tensor &x) { pixels = x.cpu().data_ptr<float>(); }
};

// Nothing is wrong with these.
void within(torch::Tensor x, float *out) { std::memcpy(out, x.cpu().data_ptr<float>(), 4); }
float atOnce(torch::Tensor x) {
  const float first = x.cpu().data_ptr<float>()[0];
  return first;
}
float named(torch::Tensor x) {
  const auto host = x.cpu();
  const float *values = host.data_ptr<float>();
  return values[0];
}
float extended(torch::Tensor x) {
  const torch::Tensor &host = x.cpu();
  const float *values = host.data_ptr<float>();
  return values[0];
}
float shared(torch::Tensor x) {
  const float *values = x.view(-1).data_ptr<float>(), *same = x.detach().contiguous().data_ptr<float>();
  return values[0] + same[0];
}
torch::Tensor held(torch::Tensor x) { return x; }
float fromFunction(torch::Tensor x) {
  const float *values = held(x).data_ptr<float>();
  return values[0];
}
double number(torch::Tensor x) {
  const double sum = (x + 1).sum().item<double>();
  return sum * sum;
}
