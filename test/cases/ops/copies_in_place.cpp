// copy_ and its friends cross devices; arithmetic in place does not.
#include "../cases.h"
#include <torch/torch.h>

static void copy_into_device_buffer_ok() {
  auto staging = torch::rand({4, 2});
  auto buffer = torch::empty({4, 2}, torch::kCUDA);
  buffer.copy_(staging);
  buffer.select(0, 1).copy_(staging[0], /*non_blocking=*/true);
  auto y = buffer * torch::ones({2}, torch::kCUDA);
  TORCH_CHECK(y.is_cuda());
}

// copy_ keeps the destination where it was.
static void copy_does_not_move_the_destination_bad() {
  auto onGpu = torch::rand({4, 2}, torch::kCUDA);
  auto mirror = torch::empty({4, 2});
  mirror.copy_(onGpu);
  auto d = (mirror - onGpu).abs(); // [[device-mixed-op]]
  TORCH_CHECK(d.defined());
}

static void add_in_place_bad() {
  auto weight = torch::rand({3}, torch::kCUDA);
  weight.add_(torch::randn({3}), 0.01); // [[device-mixed-op]]
}

static void add_in_place_like_ok() {
  auto weight = torch::rand({3}, torch::kCUDA);
  weight.add_(torch::randn_like(weight), 0.01);
}

static void manual_sgd_gradient_on_host_bad() {
  torch::NoGradGuard off;
  auto w = torch::rand({3}, torch::kCUDA);
  auto g = torch::rand({3});
  w -= 0.1 * g; // [[device-mixed-op]]
}

static void ema_of_weights_on_host_bad() {
  torch::NoGradGuard off;
  torch::nn::Linear live(3, 3);
  live->to(torch::kCUDA);
  auto ema = live->weight.detach().clone().cpu();
  ema.mul_(0.99).add_(live->weight, 0.01); // [[device-mixed-op]]
}

static void ema_of_weights_on_device_ok() {
  torch::NoGradGuard off;
  torch::nn::Linear live(3, 3);
  live->to(torch::kCUDA);
  auto ema = live->weight.detach().clone();
  ema.mul_(0.99).add_(live->weight, 0.01);
}

static void soft_update_by_copy_ok() {
  torch::NoGradGuard off;
  torch::nn::Linear online(3, 3), target(3, 3);
  online->to(torch::kCUDA);
  auto from = online->parameters(), to = target->parameters();
  for (size_t i = 0; i < from.size(); ++i)
    to[i].copy_(from[i]);
}

static void soft_update_in_place_bad() {
  torch::NoGradGuard off;
  torch::nn::Linear online(3, 3), target(3, 3);
  online->to(torch::kCUDA);
  auto from = online->parameters(), to = target->parameters();
  for (size_t i = 0; i < from.size(); ++i)
    to[i].mul_(0.9).add_(0.1 * from[i]); // [[device-mixed-op]]
}

static void soft_update_in_place_ok() {
  torch::NoGradGuard off;
  torch::nn::Linear online(3, 3), target(3, 3);
  online->to(torch::kCUDA);
  target->to(torch::kCUDA);
  auto from = online->parameters(), to = target->parameters();
  for (size_t i = 0; i < from.size(); ++i)
    to[i].mul_(0.9).add_(0.1 * from[i]);
}

// A view of a row is rebound, the buffer is not touched: no copy_, the row is simply a CPU tensor now.
static void named_row_is_rebound_bad() {
  auto buffer = torch::zeros({2, 3}, torch::kCUDA);
  auto row = buffer[0];
  row = torch::ones({3});
  auto sum = row + buffer[1]; // [[device-mixed-op]]
  TORCH_CHECK(sum.defined());
}

static void clone_and_detach_keep_the_device_ok() {
  auto x = torch::rand({3}, torch::kCUDA);
  auto y = x.detach().clone().contiguous().view({3, 1}).expand({3, 2}).sum(1);
  auto z = x + y;
  TORCH_CHECK(z.is_cuda());
}

static void out_variant_bad() {
  auto a = torch::rand({2, 2}, torch::kCUDA), b = torch::rand({2, 2}, torch::kCUDA);
  auto out = torch::empty({2, 2});
  torch::mm_out(out, a, b); // [[device-mixed-op]]
}

static void out_variant_ok() {
  auto a = torch::rand({2, 2}, torch::kCUDA), b = torch::rand({2, 2}, torch::kCUDA);
  auto out = torch::empty({2, 2}, a.options());
  torch::mm_out(out, a, b);
}

DT_MAIN(copy_into_device_buffer_ok, copy_does_not_move_the_destination_bad, add_in_place_bad,
        add_in_place_like_ok, manual_sgd_gradient_on_host_bad, ema_of_weights_on_host_bad,
        ema_of_weights_on_device_ok, soft_update_by_copy_ok, soft_update_in_place_bad,
        soft_update_in_place_ok, named_row_is_rebound_bad, clone_and_detach_keep_the_device_ok,
        out_variant_bad, out_variant_ok)
