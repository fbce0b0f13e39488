// Device types, indices and legacy types that code asks for: in a branch, a switch, an assertion.
#include "../cases.h"

#include <torch/torch.h>

#define CHECK_CUDA(x) TORCH_CHECK((x).type().is_cuda(), #x " must be a CUDA tensor")

namespace {

torch::Tensor on_gpu() { return torch::rand({3}, torch::kCUDA); }

// A switch takes the case of the device that is there.
torch::Tensor shifted(const torch::Tensor &x) {
  switch (x.device().type()) {
  case torch::kCUDA:
    return x + torch::ones({3}, x.device());
  case torch::kCPU:
    return x + torch::ones({3});
  default:
    throw std::runtime_error("no kernel for this device");
  }
}
void switch_ok() { shifted(shifted(on_gpu()).cpu()); }

torch::Tensor shifted_wrongly(const torch::Tensor &x) {
  const auto type = x.device().type();
  switch (type) {
  case torch::kCPU:
    return x;
  default:
    return x + torch::ones({3}); // [[device-mixed-op]]
  }
}
void switch_bad() { shifted_wrongly(on_gpu()); }

torch::Tensor placed(const torch::Tensor &x, torch::Device device) {
  switch (device.type()) {
  case torch::kCPU:
    return x.to(device) + torch::ones({3});
  default:
    return x;
  }
}
void switch_over_a_parameter_ok() { placed(on_gpu(), torch::Device(torch::kCUDA)); }

torch::Tensor only_on_cpu(const torch::Tensor &x) {
  if (x.device().type() == torch::kCPU)
    return x + torch::ones({3});
  return x;
}
void compared_type_ok() { only_on_cpu(on_gpu()); }
torch::Tensor only_elsewhere(const torch::Tensor &x) {
  if (x.device().type() != torch::kCPU)
    return x + torch::ones({3}); // [[device-mixed-op]]
  return x;
}
void compared_type_bad() { only_elsewhere(on_gpu()); }

// Only the CPU has the index -1.
torch::Tensor by_index(const torch::Tensor &x) {
  if (x.get_device() >= 0)
    return x;
  return x + torch::ones({3});
}
void index_ok() { by_index(on_gpu()); }
torch::Tensor by_kept_index(const torch::Tensor &x) {
  const auto index = x.get_device();
  if (index == -1)
    return x + torch::ones({3});
  return x + torch::ones({3}, torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index)));
}
void kept_index_ok() {
  by_kept_index(on_gpu());
  by_kept_index(torch::rand({3}, torch::Device(torch::kCUDA, 1)));
  by_kept_index(torch::rand({3}));
}
torch::Tensor by_index_of_device(const torch::Tensor &x) {
  return x.device().index() == -1 ? x + torch::ones({3}) : x;
}
void index_of_device_ok() { by_index_of_device(on_gpu()); }
torch::Tensor wrong_for_gpus(const torch::Tensor &x) {
  if (x.get_device() >= 0)
    return x + torch::ones({3}); // [[device-mixed-op]]
  return x;
}
void index_bad() { wrong_for_gpus(on_gpu()); }

// The macro of older extensions.
torch::Tensor checked(torch::Tensor x) {
  CHECK_CUDA(x);
  return x + torch::ones({3}); // [[device-mixed-op]]
}
void checked_type_bad() { checked(on_gpu()); }
torch::Tensor checked_well(torch::Tensor x) {
  CHECK_CUDA(x);
  return x + torch::ones({3}, x.type());
}
void checked_type_ok() { checked_well(on_gpu()); }
torch::Tensor by_type(const torch::Tensor &x) { return x.type().is_cuda() ? x : x + torch::ones({3}); }
void asked_type_ok() { by_type(on_gpu()); }

#ifndef DT_RUN // needs glog where LibTorch is built with it
// Assertions of the logging macros end the program.
torch::Tensor logged_type(const torch::Tensor &x) {
  TORCH_CHECK_EQ(x.device().type(), torch::kCUDA);
  return x + torch::ones({3}); // [[device-mixed-op]]
}
torch::Tensor logged_index(const torch::Tensor &x) {
  TORCH_CHECK_GE(x.get_device(), 0);
  return x + torch::ones({3}); // [[device-mixed-op]]
}
torch::Tensor logged_host(const torch::Tensor &x) {
  CHECK(!x.is_cuda()) << "a host tensor";
  return x + torch::ones({3});
}
torch::Tensor logged_host_type(const torch::Tensor &x) {
  TORCH_CHECK_EQ(x.device().type(), torch::kCPU);
  return x + torch::ones({3});
}
void logged() {
  logged_type(on_gpu());
  logged_index(on_gpu());
  logged_host(torch::rand({3}));
  logged_host_type(torch::rand({3}));
}
#endif

// Types as options.
void legacy_cpu_bad() {
  auto sum = on_gpu() + torch::zeros({3}, torch::CPU(torch::kFloat)); // [[device-mixed-op]]
}
void legacy_cuda_ok() { auto sum = on_gpu() + torch::zeros({3}, torch::CUDA(torch::kFloat)); }
void other_backend_bad() {
  auto x = on_gpu();
  auto sum = x + torch::zeros({3}, x.type().toBackend(at::Backend::CPU)); // [[device-mixed-op]]
}
void other_backend_ok() {
  auto x = on_gpu();
  auto sum = x.cpu() + torch::zeros({3}, x.type().cpu());
  auto again = x + torch::zeros({3}, x.type().toScalarType(torch::kDouble));
}

} // namespace

DT_MAIN(switch_ok, switch_bad, switch_over_a_parameter_ok, compared_type_ok, compared_type_bad, index_ok, kept_index_ok,
        index_of_device_ok, index_bad, checked_type_bad, checked_type_ok, asked_type_ok, legacy_cpu_bad, legacy_cuda_ok,
        other_backend_bad, other_backend_ok)
