// REQUIRES: torch
// RUN: not %device-tidy --checks=device-discarded-move %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

struct Batch {
  torch::Tensor data;
  void to(torch::Device device) { data = data.to(device); }
};

void prepare(torch::nn::Linear &model, torch::Tensor state, Batch &batch, torch::Device device) {
  model->to(device);
  batch.to(device);
  // CHECK: :[[@LINE+2]]:{{.*}} warning: the result of 'to' is thrown away; {{.*}}'state' {{.*}} [device-discarded-move]
  // CHECK: note: keep the result: state = state.to(device)
  state.to(device);
  // CHECK: :[[@LINE+1]]:{{.*}} [device-discarded-move]
  state.to(torch::kFloat16);
  // CHECK: :[[@LINE+2]]:{{.*}} warning: the result of 'cpu' is thrown away
  // CHECK: note: keep the result: auto moved = state.detach().cpu()
  state.detach().cpu();
  state = state.to(device);
  (void)state.cuda();
}
