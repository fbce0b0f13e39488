// REQUIRES: torch
// RUN: not %device-tidy --checks=device-unregistered-tensor %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

struct BadImpl : torch::nn::Module {
  BadImpl() : layer(register_module("layer", torch::nn::Linear(3, 3))) {
    mean = torch::zeros({3});
  }
  // CHECK: :[[@LINE+1]]:{{.*}} warning: '-' gets 'layer->forward(x)' on cuda and 'mean' on cpu: tensor member 'mean' of 'BadImpl' is not registered, {{.*}} [device-unregistered-tensor]
  torch::Tensor forward(torch::Tensor x) { return layer->forward(x) - mean; }
  // CHECK: :[[@LINE-4]]:{{.*}} note: 'mean' is created on cpu here
  // CHECK: note: 'mean' is declared here
  // CHECK: note: a 'BadImpl' is moved here
  // CHECK: :[[@LINE-7]]:{{.*}} note: register it: register_buffer("mean", mean)
  torch::nn::Linear layer;
  torch::Tensor mean;
};
TORCH_MODULE(Bad);

struct GoodImpl : torch::nn::Module {
  GoodImpl() : layer(register_module("layer", torch::nn::Linear(3, 3))) {
    mean = register_buffer("mean", torch::zeros({3}));
  }
  torch::Tensor forward(torch::Tensor x) { return layer->forward(x) - mean; }
  torch::nn::Linear layer;
  torch::Tensor mean;
};
TORCH_MODULE(Good);

void train() {
  Bad bad;
  Good good;
  bad->to(torch::kCUDA);
  good->to(torch::kCUDA);
  auto x = torch::ones({2, 3}, torch::kCUDA);
  auto y = bad->forward(x) + good->forward(x);
}
