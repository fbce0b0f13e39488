// Where a device is taken from: parameters of a model, optional devices, maps of devices, carrier tensors.
#include <torch/torch.h>

#include <array>
#include <map>
#include <string>

#include "../cases.h"

void device_of_the_first_parameter_ok() {
  torch::nn::Linear net(3, 2);
  net->to(torch::kCUDA);
  const auto device = net->parameters().front().device();
  auto y = net(torch::rand({1, 3}, device));
  TORCH_CHECK(y.is_cuda());
}

void device_of_the_first_parameter_taken_too_early_bad() {
  torch::nn::Linear net(3, 2);
  const auto device = net->parameters().front().device();
  net->to(torch::kCUDA);
  auto y = net(torch::rand({1, 3}, device)); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void device_of_the_weight_ok() {
  torch::nn::Linear net(3, 2);
  net->to(torch::Device(torch::kCUDA, 1));
  auto y = net(torch::rand({1, 3}).to(net->weight.device()));
  TORCH_CHECK(y.get_device() == 1);
}

static torch::Device orDefault(const torch::optional<torch::Device> &device) {
  return device.value_or(torch::Device(torch::kCPU));
}

void optional_device_missing_bad() {
  torch::optional<torch::Device> requested;
  auto mask = torch::ones({3}, orDefault(requested));
  auto x = torch::rand({3}, torch::kCUDA) * mask; // [[device-mixed-op]]
  TORCH_CHECK(x.defined());
}

void optional_device_given_ok() {
  torch::optional<torch::Device> requested = torch::Device(torch::kCUDA);
  auto mask = torch::ones({3}, orDefault(requested));
  auto x = torch::rand({3}, torch::kCUDA) * mask;
  TORCH_CHECK(x.defined());
}

void map_of_devices_bad() {
  std::map<std::string, torch::Device> placement;
  placement.emplace("encoder", torch::Device("cuda:0"));
  placement.emplace("decoder", torch::Device("cuda:1"));
  auto memory = torch::rand({2, 4}, placement.at("encoder"));
  auto query = torch::rand({2, 4}, placement.at("decoder"));
  auto scores = query.matmul(memory.t()); // [[device-mixed-op]]
  TORCH_CHECK(scores.defined());
}

void map_of_devices_ok() {
  std::map<std::string, torch::Device> placement;
  placement.emplace("encoder", torch::Device("cuda:0"));
  placement.emplace("decoder", torch::Device("cuda:1"));
  auto memory = torch::rand({2, 4}, placement.at("encoder"));
  auto query = torch::rand({2, 4}, placement.at("decoder"));
  auto scores = query.matmul(memory.to(placement.at("decoder")).t());
  TORCH_CHECK(scores.defined());
}

void new_factories_inherit_ok() {
  auto x = torch::rand({3}, torch::kCUDA);
  auto y = x.new_zeros({3}) + torch::full_like(x, 2) - x.new_full({3}, 1.0) + torch::empty_like(x).zero_();
  TORCH_CHECK(y.is_cuda());
}

void like_factory_with_cpu_option_bad() {
  auto x = torch::rand({3}, torch::kCUDA);
  auto y = x + torch::zeros_like(x, torch::TensorOptions().device(torch::kCPU)); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void like_factory_with_dtype_option_ok() {
  auto x = torch::rand({3}, torch::kCUDA);
  auto y = x + torch::ones_like(x, torch::kLong);
  TORCH_CHECK(y.defined());
}

// The size is taken from the other tensor, not the device.
void sizes_of_the_other_bad() {
  auto x = torch::rand({2, 3}, torch::kCUDA);
  auto keep = torch::empty(x.sizes()).bernoulli_(0.9);
  auto y = x * keep / 0.9; // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void sizes_and_options_of_the_other_ok() {
  auto x = torch::rand({2, 3}, torch::kCUDA);
  auto keep = torch::empty(x.sizes(), x.options()).bernoulli_(0.9);
  auto y = x * keep / 0.9;
  TORCH_CHECK(y.defined());
}

void expand_as_keeps_its_own_device_bad() {
  auto x = torch::rand({2, 3}, torch::kCUDA);
  auto bias = torch::zeros({1, 3}).expand_as(x);
  auto y = x + bias; // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void array_of_devices_ok() {
  const std::array<torch::Device, 2> gpus{torch::Device(torch::kCUDA, 0), torch::Device(torch::kCUDA, 1)};
  auto a = torch::rand({3}, gpus[0]);
  auto b = torch::rand({3}, gpus[1]).to(gpus[0]);
  auto c = a + b;
  TORCH_CHECK(c.get_device() == 0);
}

DT_MAIN(device_of_the_first_parameter_ok, device_of_the_first_parameter_taken_too_early_bad,
        device_of_the_weight_ok, optional_device_missing_bad, optional_device_given_ok, map_of_devices_bad,
        map_of_devices_ok, new_factories_inherit_ok, like_factory_with_cpu_option_bad,
        like_factory_with_dtype_option_ok, sizes_of_the_other_bad, sizes_and_options_of_the_other_ok,
        expand_as_keeps_its_own_device_bad, array_of_devices_ok)
