// A library without callers: device parameters are symbols, tensor parameters are unknown.
#include <torch/torch.h>

#include "../cases.h"

namespace lib {

torch::Tensor scale_batch_bad(const torch::Tensor &batch, torch::Device device) {
  auto x = batch.to(device);
  auto scale = torch::full({3}, 2.0);
  return x * scale; // [[device-mixed-op]]
}

torch::Tensor scale_batch_ok(const torch::Tensor &batch, torch::Device device) {
  auto x = batch.to(device);
  auto scale = torch::full({3}, 2.0, device);
  return x * scale;
}

// The code beside it is meant for more devices than the CPU.
torch::Tensor given_tensor_against_literal_bad(const torch::Tensor &batch) {
  return batch + torch::ones({3}); // [[device-mixed-op]]
}

torch::Tensor two_unknown_tensors_ok(const torch::Tensor &a, const torch::Tensor &b) {
  return torch::cat({a, b}).mean(0);
}

torch::Tensor two_device_parameters_ok(torch::Device first, torch::Device second) {
  auto a = torch::rand({3}, first);
  auto b = torch::rand({3}, second);
  return a + b;
}

torch::Tensor tensor_of_unknown_device_and_parameter_ok(const torch::Tensor &a, torch::Device device) {
  return a * torch::ones({3}, device);
}

torch::Tensor mask_by_options_ok(const torch::Tensor &scores) {
  auto mask = torch::ones({3}, scores.options());
  return scores * mask;
}

torch::Tensor target_for_bad(torch::nn::Linear &net, torch::Device device, int64_t n) {
  net->to(device);
  auto output = net->forward(torch::rand({n, 3}, device));
  auto target = torch::zeros({n, 1});
  return torch::mse_loss(output, target); // [[device-loss-input]]
}

torch::Tensor target_for_ok(torch::nn::Linear &net, torch::Device device, int64_t n) {
  net->to(device);
  auto output = net->forward(torch::rand({n, 3}, device));
  auto target = torch::zeros_like(output);
  return torch::mse_loss(output, target);
}

// The tensor itself is the carrier of the device.
torch::Tensor like_carrier_bad(const torch::Tensor &carrier) {
  auto on_carrier = torch::rand({3, 3}).to(carrier.device());
  auto gpu = torch::rand({3, 3}, torch::kCUDA);
  auto host = gpu.cpu();
  return torch::mm(gpu, host) + on_carrier; // [[device-mixed-op]]
}

} // namespace lib

#ifdef DT_RUN
static torch::Device gpu() { return torch::Device(torch::kCUDA, 0); }
static void run_scale_batch_bad() { lib::scale_batch_bad(torch::rand({2, 3}), gpu()); }
static void run_scale_batch_ok() { lib::scale_batch_ok(torch::rand({2, 3}), gpu()); }
static void run_literal_bad() { lib::given_tensor_against_literal_bad(torch::rand({3}, gpu())); }
static void run_two_unknown_ok() { lib::two_unknown_tensors_ok(torch::rand({3}), torch::rand({3})); }
static void run_two_devices_ok() { lib::two_device_parameters_ok(gpu(), gpu()); }
static void run_tensor_and_device_ok() {
  lib::tensor_of_unknown_device_and_parameter_ok(torch::rand({3}, gpu()), gpu());
}
static void run_mask_ok() { lib::mask_by_options_ok(torch::rand({3}, gpu())); }
static void run_target_for_bad() {
  torch::nn::Linear net(3, 1);
  lib::target_for_bad(net, gpu(), 4);
}
static void run_target_for_ok() {
  torch::nn::Linear net(3, 1);
  lib::target_for_ok(net, gpu(), 4);
}
static void run_like_carrier_bad() { lib::like_carrier_bad(torch::rand({1})); }
DT_MAIN(run_scale_batch_bad, run_scale_batch_ok, run_literal_bad, run_two_unknown_ok, run_two_devices_ok,
        run_tensor_and_device_ok, run_mask_ok, run_target_for_bad, run_target_for_ok, run_like_carrier_bad)
#endif
