// Host code that writes into tensors, and pointers that only pass through it.
#include "../cases.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

// A stand-in for a kernel's launcher: it has the pointer, and the host does not look at what it points to.
std::uintptr_t lastLaunch = 0;
void launchScale(float *values, int64_t count) {
  lastLaunch = reinterpret_cast<std::uintptr_t>(values) + static_cast<std::uintptr_t>(count);
}

void fillOnHost(float *values, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(i); // [[device-host-access]]
}

void fillAnywhere(torch::Tensor &target) {
  if (target.is_cuda())
    target.fill_(1);
  else
    std::fill_n(target.data_ptr<float>(), target.numel(), 1.0f);
}

} // namespace

void first_element_bad() {
  auto weight = torch::zeros({4}, torch::kCUDA);
  weight.data_ptr<float>()[0] = 1; // [[device-host-access]]
}

void first_element_ok() {
  auto weight = torch::zeros({4}, torch::kCUDA);
  weight[0] = 1;
}

void helper_fills_bad() {
  auto target = torch::empty({4}, torch::kCUDA);
  fillOnHost(target.data_ptr<float>(), target.numel());
}

void helper_fills_ok() {
  auto target = torch::empty({4});
  float *values = target.data_ptr<float>();
  for (int i = 0; i < 4; ++i)
    values[i] = static_cast<float>(i);
  auto moved = target.to(torch::kCUDA);
  (void)moved;
}

void moved_before_filling_bad() {
  std::vector<float> values{1, 2, 3};
  auto target = torch::empty({3});
  target = target.to(torch::kCUDA);
  std::copy(values.begin(), values.end(), target.data_ptr<float>()); // [[device-host-access]]
}

void moved_after_filling_ok() {
  std::vector<float> values{1, 2, 3};
  auto target = torch::empty({3});
  std::copy(values.begin(), values.end(), target.data_ptr<float>());
  target = target.to(torch::kCUDA);
}

void launch_ok() {
  auto x = torch::rand({4}, torch::kCUDA);
  launchScale(x.data_ptr<float>(), x.numel());
  launchScale(x.data_ptr<float>() + 2, 2);
}

void either_device_ok() {
  auto onGpu = torch::rand({4}, torch::kCUDA), onHost = torch::rand({4});
  fillAnywhere(onGpu);
  fillAnywhere(onHost);
}

DT_MAIN(first_element_bad, first_element_ok, helper_fills_bad, helper_fills_ok, moved_before_filling_bad,
        moved_after_filling_ok, launch_ok, either_device_ok)
