// The dtype form of the mistake, type_as, and the shapes around it that are no mistake.
#include "../cases.h"
#include <torch/torch.h>

namespace F = torch::nn::functional;

static void labels_to_long_discarded_bad() {
  auto labels = torch::ones({4}, torch::kInt);
  labels.to(torch::kLong); // [[device-discarded-move]]
  TORCH_CHECK(labels.numel() == 4);
}

static void labels_to_long_ok() {
  auto labels = torch::ones({4}, torch::kInt);
  labels = labels.to(torch::kLong);
  TORCH_CHECK(labels.numel() == 4);
}

static void pixels_to_float_discarded_bad() {
  auto image = torch::randint(0, 255, {3, 4, 4}, torch::kUInt8);
  image.to(torch::kFloat32).div_(255); // works on the temporary, but the temporary is used: silent
  image.to(torch::kFloat32);           // [[device-discarded-move]]
}

static void pixels_to_float_ok() {
  auto image = torch::randint(0, 255, {3, 4, 4}, torch::kUInt8);
  auto scaled = image.to(torch::kFloat32).div_(255);
  TORCH_CHECK(scaled.max().item<float>() <= 1.0f);
}

static void type_as_discarded_bad() {
  auto logits = torch::rand({2, 2}, torch::kCUDA);
  auto mask = torch::ones({2, 2}, torch::kBool);
  mask.type_as(logits); // [[device-discarded-move]]
}

static void type_as_used_ok() {
  auto logits = torch::rand({2, 2}, torch::kCUDA);
  auto mask = torch::ones({2, 2}, torch::kBool);
  auto masked = logits * mask.type_as(logits);
  TORCH_CHECK(masked.is_cuda());
}

static void to_other_tensor_discarded_bad() {
  auto reference = torch::rand({2}, torch::TensorOptions().device(torch::kCUDA).dtype(torch::kFloat64));
  auto x = torch::rand({2});
  x.to(reference); // [[device-discarded-move]]
}

static void to_other_tensor_ok() {
  auto reference = torch::rand({2}, torch::TensorOptions().device(torch::kCUDA).dtype(torch::kFloat64));
  auto x = torch::rand({2});
  auto y = x.to(reference) + reference;
  TORCH_CHECK(y.is_cuda());
}

// Device, dtype, non_blocking, copy: the long form is discarded just the same.
static void long_form_discarded_bad() {
  torch::Tensor x = torch::rand({8});
  x.to(torch::kCUDA, torch::kFloat16, /*non_blocking=*/true, /*copy=*/true); // [[device-discarded-move]]
}

static void module_and_model_wrappers_ok() {
  torch::nn::Sequential net(torch::nn::Linear(2, 2), torch::nn::ReLU());
  net->to(torch::kCUDA, torch::kFloat32);
  net->to(torch::kFloat64);
  std::shared_ptr<torch::nn::Module> base = net.ptr();
  base->to(torch::kCPU);
  torch::nn::CrossEntropyLoss criterion;
  criterion->to(torch::kCUDA);
}

static void in_place_methods_are_no_moves_ok() {
  auto x = torch::rand({2}, torch::kCUDA);
  x.mul_(2);
  x.requires_grad_(true);
  x.detach().zero_();
  x.set_requires_grad(false);
}

DT_MAIN(labels_to_long_discarded_bad, labels_to_long_ok, pixels_to_float_discarded_bad, pixels_to_float_ok,
        type_as_discarded_bad, type_as_used_ok, to_other_tensor_discarded_bad, to_other_tensor_ok,
        long_form_discarded_bad, module_and_model_wrappers_ok, in_place_methods_are_no_moves_ok)
