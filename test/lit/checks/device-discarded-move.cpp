// REQUIRES: torch
// RUN: not %device-tidy --checks=device-discarded-move %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

#include <map>

struct Batch {
  torch::Tensor data;
  void to(torch::Device device) { data = data.to(device); }
};

void prepare(torch::nn::Linear &model, torch::Tensor state, Batch &batch, torch::Device device) {
  model->to(device);
  batch.to(device);
  // CHECK: :[[@LINE+2]]:{{.*}} warning: the result of 'to' is discarded; {{.*}}'state'{{.*}} [device-discarded-move]
  // CHECK: note: keep the result: state = state.to(device)
  state.to(device);
  // CHECK: :[[@LINE+1]]:{{.*}} [device-discarded-move]
  state.to(torch::kFloat16);
  // CHECK: :[[@LINE+2]]:{{.*}} warning: the result of 'cpu' is discarded
  // CHECK: note: keep the result: auto moved = state.detach().cpu()
  state.detach().cpu();
  state = state.to(device);
  (void)state.cuda();
}

// A parameter of a module is moved with its module.
struct Net : torch::nn::Module {
  void move() {
    for (auto p : parameters())
      // CHECK: :[[@LINE+2]]:{{.*}} [device-discarded-move]
      // CHECK: note: move the module itself: to(torch::kCUDA)
      p.cuda();
  }
};
void move(torch::nn::Linear model, torch::Device device) {
  for (auto &p : model->parameters())
    // CHECK: :[[@LINE+2]]:{{.*}} [device-discarded-move]
    // CHECK: note: move the module itself: model->to(device)
    p.to(device);
  for (auto &item : model->named_parameters())
    // CHECK: :[[@LINE+2]]:{{.*}} [device-discarded-move]
    // CHECK: note: move the module itself: model->to(device)
    item.value().to(device);
}

// Each place is a finding of its own.
torch::Tensor places(torch::Tensor x, bool gpu) {
  // CHECK: :[[@LINE+2]]:5: {{.*}} [device-discarded-move]
  // CHECK: :[[@LINE+1]]:15: {{.*}} [device-discarded-move]
  x.cuda(); x.cuda();
  // CHECK: :[[@LINE+2]]:11: {{.*}} [device-discarded-move]
  // CHECK: :[[@LINE+1]]:22: {{.*}} [device-discarded-move]
  gpu ? x.cuda() : x.cpu();
  return x;
}

// The loop variable is a copy of the element.
void moveAll(std::vector<torch::Tensor> &list, std::map<std::string, torch::Tensor> &byName, torch::Device device) {
  for (auto each : list)
    // CHECK: :[[@LINE+2]]:{{.*}} warning: the result of 'to' is put into a copy that nothing reads; {{.*}} does not change 'list' [device-discarded-move]
    // CHECK: note: the loop variable is a copy: take the elements of 'list' by reference
    each = each.to(device);
  for (auto entry : byName)
    // CHECK: :[[@LINE+1]]:{{.*}} does not change 'byName' [device-discarded-move]
    entry.second = entry.second.to(device);
  for (auto &each : list)
    each = each.to(device);
  torch::Tensor sum = torch::zeros({3}, device);
  for (auto each : list) {
    each = each.to(device);
    sum += each;
  }
}
