// Loss functions and loss modules: targets, class weights and pos_weight.
#include <torch/torch.h>

#include "../cases.h"

namespace F = torch::nn::functional;
using namespace torch;

static Tensor gpuLogits(int64_t n, int64_t c) {
  return torch::randn({n, c}, TensorOptions(kCUDA).requires_grad(true));
}

static void class_weights_on_host_bad() {
  auto logits = gpuLogits(4, 3);
  auto target = torch::randint(3, {4}, TensorOptions(kLong).device(kCUDA));
  auto weights = torch::tensor({1.0f, 2.0f, 0.5f});
  auto options = F::CrossEntropyFuncOptions().weight(weights);
  auto loss = F::cross_entropy(logits, target, options); // [[device-loss-input]]
  loss.backward();
}

static void class_weights_on_device_ok() {
  auto logits = gpuLogits(4, 3);
  auto target = torch::randint(3, {4}, TensorOptions(kLong).device(kCUDA));
  auto weights = torch::tensor({1.0f, 2.0f, 0.5f}, kCUDA);
  auto options = F::CrossEntropyFuncOptions().weight(weights);
  auto loss = F::cross_entropy(logits, target, options);
  loss.backward();
}

static void criterion_with_weights_never_moved_bad() {
  nn::CrossEntropyLoss criterion(nn::CrossEntropyLossOptions().weight(torch::tensor({1.0f, 2.0f, 0.5f})));
  auto logits = gpuLogits(4, 3);
  auto target = torch::randint(3, {4}, TensorOptions(kLong).device(kCUDA));
  auto loss = criterion(logits, target); // [[device-loss-input]]
  loss.backward();
}

static void criterion_with_weights_moved_ok() {
  nn::CrossEntropyLoss criterion(nn::CrossEntropyLossOptions().weight(torch::tensor({1.0f, 2.0f, 0.5f})));
  criterion->to(kCUDA);
  auto logits = gpuLogits(4, 3);
  auto target = torch::randint(3, {4}, TensorOptions(kLong).device(kCUDA));
  auto loss = criterion(logits, target);
  loss.backward();
}

static void criterion_without_weights_needs_no_move_ok() {
  nn::CrossEntropyLoss criterion;
  auto logits = gpuLogits(4, 3);
  auto target = torch::randint(3, {4}, TensorOptions(kLong).device(kCUDA));
  criterion(logits, target).backward();
}

static void pos_weight_on_host_bad() {
  auto logits = gpuLogits(4, 2);
  auto target = torch::ones_like(logits);
  nn::BCEWithLogitsLoss bce(nn::BCEWithLogitsLossOptions().pos_weight(torch::full({2}, 3.0)));
  auto loss = bce->forward(logits, target); // [[device-loss-input]]
  loss.backward();
}

static void pos_weight_on_device_ok() {
  auto logits = gpuLogits(4, 2);
  auto target = torch::ones_like(logits);
  nn::BCEWithLogitsLoss bce(nn::BCEWithLogitsLossOptions().pos_weight(torch::full({2}, 3.0, kCUDA)));
  auto loss = bce->forward(logits, target);
  loss.backward();
}

static void soft_targets_on_host_bad() {
  auto logits = gpuLogits(4, 5);
  auto teacher = torch::softmax(logits.detach(), -1).cpu();
  auto options = F::KLDivFuncOptions().reduction(torch::kBatchMean);
  auto loss = F::kl_div(torch::log_softmax(logits, -1), teacher, options); // [[device-loss-input]]
  TORCH_CHECK(loss.defined());
}

static void soft_targets_on_device_ok() {
  auto logits = gpuLogits(4, 5);
  auto teacher = torch::softmax(logits.detach(), -1);
  auto options = F::KLDivFuncOptions().reduction(torch::kBatchMean);
  auto loss = F::kl_div(torch::log_softmax(logits, -1), teacher, options);
  TORCH_CHECK(loss.defined());
}

static void shifted_labels_on_first_gpu_bad() {
  auto logits = torch::randn({2, 6, 9}, Device(kCUDA, 3));
  auto labels = torch::randint(9, {2, 6}, TensorOptions(kLong).device(kCUDA, 0));
  auto shiftLogits = logits.slice(1, 0, 5).contiguous();
  auto shiftLabels = labels.slice(1, 1).contiguous();
  auto loss = F::cross_entropy(shiftLogits.view({-1, 9}), shiftLabels.view({-1})); // [[device-loss-input]]
  TORCH_CHECK(loss.defined());
}

static void shifted_labels_moved_to_logits_ok() {
  auto logits = torch::randn({2, 6, 9}, Device(kCUDA, 3));
  auto labels = torch::randint(9, {2, 6}, TensorOptions(kLong).device(kCUDA, 0));
  auto shiftLogits = logits.slice(1, 0, 5).contiguous();
  auto shiftLabels = labels.slice(1, 1).contiguous().to(shiftLogits.device());
  auto loss = F::cross_entropy(shiftLogits.view({-1, 9}), shiftLabels.view({-1}));
  TORCH_CHECK(loss.defined());
}

DT_MAIN(class_weights_on_host_bad, class_weights_on_device_ok, criterion_with_weights_never_moved_bad,
        criterion_with_weights_moved_ok, criterion_without_weights_needs_no_move_ok, pos_weight_on_host_bad,
        pos_weight_on_device_ok, soft_targets_on_host_bad, soft_targets_on_device_ok,
        shifted_labels_on_first_gpu_bad, shifted_labels_moved_to_logits_ok)
