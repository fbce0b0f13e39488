// Globals, statics, namespace constants, static members, macros that hide a device.
#include <torch/torch.h>

#include "../cases.h"

static const torch::Device kDevice(torch::kCUDA, 0);
static torch::Tensor gMean = torch::tensor({0.1f, 0.2f, 0.3f});
static torch::Tensor gScale;
#define GPU_OPTS torch::TensorOptions().dtype(torch::kFloat32).device(torch::kCUDA, 0)
#define HOST_OPTS torch::TensorOptions().dtype(torch::kFloat32)

void global_tensor_on_host_bad() {
  auto x = torch::rand({2, 3}, kDevice);
  auto y = x - gMean; // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void global_tensor_moved_at_use_ok() {
  auto x = torch::rand({2, 3}, kDevice);
  auto y = x - gMean.to(kDevice);
  TORCH_CHECK(y.defined());
}

static void initScale() { gScale = torch::ones({3}).to(kDevice); }

void global_tensor_initialised_by_function_ok() {
  initScale();
  auto y = torch::rand({2, 3}, kDevice) * gScale;
  TORCH_CHECK(y.defined());
}

namespace constants {
inline const torch::DeviceType backend = torch::kCUDA;
}

struct Registry {
  static torch::Tensor weights;
};
torch::Tensor Registry::weights = torch::full({4}, 0.25);

void static_member_on_host_bad() {
  auto votes = torch::rand({4}, torch::Device(constants::backend));
  auto result = votes.dot(Registry::weights); // [[device-mixed-op]]
  TORCH_CHECK(result.defined());
}

static torch::Tensor &cachedGrid() {
  static torch::Tensor grid = torch::linspace(-1, 1, 4, torch::kCUDA);
  return grid;
}

static torch::Tensor &cachedHostGrid() {
  static torch::Tensor grid = torch::linspace(-1, 1, 4);
  return grid;
}

void function_static_on_device_ok() {
  auto y = torch::rand({4}, torch::kCUDA) + cachedGrid();
  TORCH_CHECK(y.is_cuda());
}

void function_static_on_host_bad() {
  auto y = torch::rand({4}, torch::kCUDA) + cachedHostGrid(); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void macro_hides_the_device_bad() {
  auto a = torch::rand({3}, GPU_OPTS);
  auto b = torch::rand({3}, HOST_OPTS);
  auto c = a * b; // [[device-mixed-op]]
  TORCH_CHECK(c.defined());
}

void macro_hides_the_device_ok() {
  auto a = torch::rand({3}, GPU_OPTS);
  auto b = torch::rand({3}, GPU_OPTS);
  auto c = a * b;
  TORCH_CHECK(c.defined());
}

DT_MAIN(global_tensor_on_host_bad, global_tensor_moved_at_use_ok, global_tensor_initialised_by_function_ok,
        static_member_on_host_bad, function_static_on_device_ok, function_static_on_host_bad,
        macro_hides_the_device_bad, macro_hides_the_device_ok)
