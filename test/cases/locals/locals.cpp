// Tensors in local variables: one body, one forgotten move.
#include "../cases.h"
#include <torch/torch.h>

void regression_target_stays_on_host_bad() {
  torch::Device device(torch::kCUDA);
  torch::nn::Linear model(3, 1);
  model->to(device);
  auto x = torch::randn({8, 3}).to(device);
  auto y = torch::randn({8, 1});
  auto prediction = model->forward(x);
  auto loss = torch::mse_loss(prediction, y); // [[device-loss-input]]
  loss.backward();
}

void regression_target_moved_ok() {
  torch::Device device(torch::kCUDA);
  torch::nn::Linear model(3, 1);
  model->to(device);
  auto x = torch::randn({8, 3}).to(device);
  auto y = torch::randn({8, 1}).to(device);
  auto prediction = model->forward(x);
  auto loss = torch::mse_loss(prediction, y);
  loss.backward();
}

void noise_like_host_copy_bad() {
  auto signal = torch::randn({4, 16}, torch::kCUDA);
  auto copy = signal.cpu();
  auto noise = torch::randn_like(copy) * 0.1;
  auto noisy = signal + noise; // [[device-mixed-op]]
  std::printf("%f\n", noisy.mean().item<double>());
}

void noise_like_signal_ok() {
  auto signal = torch::randn({4, 16}, torch::kCUDA);
  auto copy = signal.cpu();
  auto noise = torch::randn_like(signal) * 0.1;
  auto noisy = signal + noise;
  std::printf("%f %f\n", noisy.mean().item<double>(), copy.mean().item<double>());
}

void positions_without_device_bad() {
  const int64_t length = 12;
  torch::nn::Embedding table(64, 8);
  table->to(torch::kCUDA);
  torch::Tensor positions = torch::arange(length, torch::kLong);
  torch::Tensor encoded = table(positions); // [[device-mixed-op]]
  encoded.sum().backward();
}

void positions_with_device_ok() {
  const int64_t length = 12;
  torch::nn::Embedding table(64, 8);
  table->to(torch::kCUDA);
  torch::Tensor positions = torch::arange(length, torch::dtype(torch::kLong).device(torch::kCUDA));
  torch::Tensor encoded = table(positions);
  encoded.sum().backward();
}

// Assigning to `moved` does not move `original`: a Tensor is a handle.
void handle_reassigned_bad() {
  torch::Tensor original = torch::ones({5});
  torch::Tensor moved = original;
  moved = moved.to(torch::kCUDA);
  torch::Tensor sum = original + moved; // [[device-mixed-op]]
  TORCH_CHECK(sum.defined());
}

void handle_reassigned_in_place_ok() {
  torch::Tensor original = torch::ones({5});
  torch::Tensor &moved = original;
  moved = moved.to(torch::kCUDA);
  torch::Tensor sum = original + moved;
  TORCH_CHECK(sum.defined());
}

// The host value is only used before the move.
void used_before_the_move_ok() {
  auto weights = torch::rand({6});
  auto prior = torch::ones({6}) / 6;
  auto host = weights * prior;
  weights = weights.to(torch::kCUDA);
  prior = prior.to(torch::kCUDA);
  auto onDevice = weights * prior;
  auto difference = (onDevice.cpu() - host).abs().max();
  TORCH_CHECK(difference.item<float>() < 1e-3);
}

void used_before_and_after_the_move_bad() {
  auto weights = torch::rand({6});
  auto prior = torch::ones({6}) / 6;
  auto host = weights * prior;
  weights = weights.to(torch::kCUDA);
  auto onDevice = weights * prior; // [[device-mixed-op]]
  TORCH_CHECK(host.defined() && onDevice.defined());
}

DT_MAIN(regression_target_stays_on_host_bad, regression_target_moved_ok, noise_like_host_copy_bad,
        noise_like_signal_ok, positions_without_device_bad, positions_with_device_ok, handle_reassigned_bad,
        handle_reassigned_in_place_ok, used_before_the_move_ok, used_before_and_after_the_move_bad)
