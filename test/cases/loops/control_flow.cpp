// Loops, switch, conditional operator, early return, try/catch.
#include "../cases.h"
#include <torch/torch.h>

#include <stdexcept>
#include <vector>

enum class Mode { Train, Eval, Predict };

static torch::Tensor noiseFor(Mode mode, const torch::Tensor &x) {
  switch (mode) {
  case Mode::Train:
    return torch::randn_like(x);
  case Mode::Eval:
    return torch::zeros(x.sizes());
  default:
    return torch::zeros_like(x);
  }
}

static void switch_eval_case_on_host_bad() {
  auto x = torch::rand({3}, torch::kCUDA);
  auto noisy = x + noiseFor(Mode::Eval, x); // [[device-mixed-op]]
  TORCH_CHECK(noisy.defined());
}

static torch::Tensor fixedNoiseFor(Mode mode, const torch::Tensor &x) {
  switch (mode) {
  case Mode::Train:
    return torch::randn_like(x);
  case Mode::Eval:
    return torch::zeros(x.sizes(), x.options());
  default:
    return torch::zeros_like(x);
  }
}

static void switch_every_case_like_x_ok() {
  auto x = torch::rand({3}, torch::kCUDA);
  auto noisy = x + fixedNoiseFor(Mode::Eval, x);
  TORCH_CHECK(noisy.defined());
}

static void switch_fallthrough_moves_ok(Mode mode) {
  auto x = torch::rand({3});
  switch (mode) {
  case Mode::Train:
  case Mode::Eval:
    x = x.to(torch::kCUDA);
    break;
  case Mode::Predict:
    x = torch::zeros({3}, torch::kCUDA);
    break;
  default:
    return;
  }
  TORCH_CHECK((x * torch::ones({3}, torch::kCUDA)).is_cuda());
}
static void call_switch_fallthrough_ok() {
  switch_fallthrough_moves_ok(Mode::Train);
  switch_fallthrough_moves_ok(Mode::Predict);
}

static void conditional_operator_one_arm_bad(bool half) {
  auto x = torch::rand({3}, torch::kCUDA);
  auto ones = half ? torch::ones({3}) : torch::ones({3}, torch::kCUDA);
  auto y = x * ones; // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}
static void call_conditional_operator_bad() { conditional_operator_one_arm_bad(true); }

static void conditional_operator_both_arms_ok(bool half) {
  auto x = torch::rand({3}, torch::kCUDA);
  auto ones = half ? torch::full({3}, 0.5, x.device()) : torch::ones({3}, torch::kCUDA);
  auto y = x * ones;
  TORCH_CHECK(y.defined());
}
static void call_conditional_operator_ok() { conditional_operator_both_arms_ok(true); }

static torch::Tensor earlyReturn(const torch::Tensor &x) {
  if (!x.is_cuda())
    return x + torch::ones({3});
  return x + torch::ones({3}, torch::kCUDA);
}

static void is_cuda_dispatch_ok() {
  earlyReturn(torch::rand({3}));
  earlyReturn(torch::rand({3}, torch::kCUDA));
}

static torch::Tensor earlyReturnInverted(const torch::Tensor &x) {
  if (x.is_cuda())
    return x + torch::ones({3}); // [[device-mixed-op]]
  return x * 2;
}

static void is_cuda_dispatch_inverted_bad() { earlyReturnInverted(torch::rand({3}, torch::kCUDA)); }

static torch::Tensor fallbackTo(torch::Tensor t, bool fail) {
  try {
    if (fail)
      throw std::runtime_error("out of memory");
    t = t.to(torch::kCUDA);
  } catch (const std::runtime_error &) {
    t = torch::zeros({3});
  }
  return t;
}

static void catch_leaves_tensor_on_host_bad() {
  auto t = fallbackTo(torch::rand({3}), true);
  auto s = t + torch::ones({3}, torch::kCUDA); // [[device-mixed-op]]
  TORCH_CHECK(s.defined());
}

static void catch_then_follow_the_tensor_ok() {
  auto t = fallbackTo(torch::rand({3}), true);
  auto s = t + torch::ones({3}).to(t.device());
  TORCH_CHECK(s.defined());
}

// The second iteration meets what the first one left behind.
static void loop_carried_state_bad() {
  auto x = torch::rand({3}, torch::kCUDA);
  torch::Tensor previous = torch::zeros({3}, torch::kCUDA);
  for (int i = 0; i < 2; ++i) {
    auto current = x + previous; // [[device-mixed-op]]
    previous = current.cpu();
  }
}

static void loop_carried_state_ok() {
  auto x = torch::rand({3}, torch::kCUDA);
  torch::Tensor previous = torch::zeros({3}, torch::kCUDA);
  for (int i = 0; i < 2; ++i) {
    auto current = x + previous;
    previous = current.clone();
  }
}

static void accumulate_from_host_zero_bad() {
  torch::Tensor total = torch::zeros({4});
  for (int i = 0; i < 3; ++i)
    total += torch::rand({4}, torch::kCUDA); // [[device-mixed-op]]
}

static void accumulate_from_scalar_ok() {
  double total = 0;
  for (int i = 0; i < 3; ++i)
    total += torch::rand({4}, torch::kCUDA).sum().item<double>();
  TORCH_CHECK(total >= 0);
}

// Layer i sits on device i; the activation is sent to each layer's device in turn.
static void layer_chain_follows_devices_ok() {
  std::vector<torch::nn::Linear> layers;
  for (int i = 0; i < 3; ++i) {
    layers.emplace_back(4, 4);
    layers.back()->to(torch::Device(torch::kCUDA, i));
  }
  auto h = torch::rand({1, 4});
  for (auto &layer : layers)
    h = layer->forward(h.to(layer->weight.device()));
  TORCH_CHECK(h.get_device() == 2);
}

DT_MAIN(switch_eval_case_on_host_bad, switch_every_case_like_x_ok, call_switch_fallthrough_ok,
        call_conditional_operator_bad, call_conditional_operator_ok, is_cuda_dispatch_ok,
        is_cuda_dispatch_inverted_bad, catch_leaves_tensor_on_host_bad, catch_then_follow_the_tensor_ok,
        loop_carried_state_bad, loop_carried_state_ok, accumulate_from_host_zero_bad,
        accumulate_from_scalar_ok, layer_chain_follows_devices_ok)
