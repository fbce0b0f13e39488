// REQUIRES: torch
// RUN: not %device-tidy --checks=device-loss-input %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

void stepBad(torch::nn::Linear &model) {
  model->to(torch::kCUDA);
  auto logits = model->forward(torch::randn({8, 4}, torch::kCUDA));
  auto target = torch::zeros({8}, torch::kLong);
  // CHECK: :[[@LINE+1]]:{{.*}} warning: loss '{{.*}}' gets 'logits' on cuda and 'target' on cpu [device-loss-input]
  auto loss = torch::nn::functional::cross_entropy(logits, target);
  loss.backward();
}

void stepGood(torch::nn::Linear &model) {
  model->to(torch::kCUDA);
  auto logits = model->forward(torch::randn({8, 4}, torch::kCUDA));
  auto target = torch::zeros({8}, torch::kLong);
  auto loss = torch::nn::functional::cross_entropy(logits, target.to(logits.device()));
  loss.backward();
}
