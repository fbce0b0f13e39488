// Every way to spell a device: literals, strings, indices, TensorOptions chains, other tensors.
#include <torch/torch.h>

#include <string>

#include "../cases.h"

void string_literal_bad() {
  auto a = torch::rand({2, 2}, torch::Device("cuda"));
  auto b = torch::rand({2, 2}, torch::Device("cpu"));
  auto c = a.matmul(b); // [[device-mixed-op]]
  TORCH_CHECK(c.defined());
}

void string_literal_ok() {
  auto a = torch::rand({2, 2}, torch::Device("cuda:0"));
  auto b = torch::rand({2, 2}, torch::Device(torch::kCUDA, 0));
  auto c = a.matmul(b);
  TORCH_CHECK(c.defined());
}

void options_chain_without_device_bad() {
  auto opts = torch::TensorOptions().dtype(torch::kFloat32).requires_grad(true);
  auto w = torch::randn({4}, opts);
  auto x = torch::randn({4}, opts.device(torch::kCUDA));
  auto y = w * x; // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void options_chain_with_device_ok() {
  auto opts = torch::TensorOptions().dtype(torch::kFloat32).device(torch::kCUDA).requires_grad(true);
  auto w = torch::randn({4}, opts);
  auto x = torch::randn({4}, opts.requires_grad(false));
  auto y = w * x;
  TORCH_CHECK(y.defined());
}

// TensorOptions is a value: the callee's copy gets the device, the caller's keeps the CPU.
static void use_gpu(torch::TensorOptions opts) { opts = opts.device(torch::kCUDA); }
static void use_gpu_in_place(torch::TensorOptions &opts) { opts = opts.device(torch::kCUDA); }

void options_set_by_value_bad() {
  torch::TensorOptions opts(torch::kFloat32);
  use_gpu(opts);
  auto scale = torch::ones({4}, opts);
  auto x = torch::randn({4}, torch::kCUDA);
  auto y = x * scale; // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void options_set_by_reference_ok() {
  torch::TensorOptions opts(torch::kFloat32);
  use_gpu_in_place(opts);
  auto scale = torch::ones({4}, opts);
  auto x = torch::randn({4}, torch::kCUDA);
  auto y = x * scale;
  TORCH_CHECK(y.defined());
}

void dtype_copied_from_other_but_not_device_bad() {
  auto features = torch::rand({3, 5}, torch::kCUDA);
  auto weights = torch::ones({5}, torch::dtype(features.dtype()));
  auto scored = features.mv(weights); // [[device-mixed-op]]
  TORCH_CHECK(scored.size(0) == 3);
}

void options_copied_from_other_ok() {
  auto features = torch::rand({3, 5}, torch::kCUDA);
  auto weights = torch::ones({5}, features.options());
  auto scored = features.mv(weights);
  TORCH_CHECK(scored.size(0) == 3);
}

void options_of_a_host_copy_bad() {
  auto features = torch::rand({3, 5}, torch::kCUDA);
  const auto snapshot = features.detach().to(torch::kCPU);
  auto weights = torch::ones({5}, snapshot.options());
  auto scored = torch::mv(features, weights); // [[device-mixed-op]]
  TORCH_CHECK(scored.size(0) == 3);
}

void device_of_another_tensor_ok() {
  auto features = torch::rand({3, 5}, torch::Device(torch::kCUDA, 2));
  auto bias = torch::zeros({5}).to(features.device());
  auto shifted = features + bias;
  TORCH_CHECK(shifted.get_device() == 2);
}

void type_as_takes_the_device_ok() {
  auto gpu = torch::rand({2, 5}, torch::kCUDA);
  auto host = torch::ones({2, 5}, torch::kLong);
  auto sum = gpu + host.type_as(gpu);
  TORCH_CHECK(sum.is_cuda());
}

void scalar_type_keeps_the_device_bad() {
  auto gpu = torch::rand({2, 5}, torch::kCUDA);
  auto host = torch::ones({2, 5}, torch::kLong);
  auto sum = gpu + host.to(gpu.scalar_type()); // [[device-mixed-op]]
  TORCH_CHECK(sum.defined());
}

DT_MAIN(string_literal_bad, string_literal_ok, options_chain_without_device_bad,
        options_chain_with_device_ok, options_set_by_value_bad, options_set_by_reference_ok,
        dtype_copied_from_other_but_not_device_bad, options_copied_from_other_ok,
        options_of_a_host_copy_bad, device_of_another_tensor_ok, type_as_takes_the_device_ok,
        scalar_type_keeps_the_device_bad)
