// from_blob() believes what it is told about the memory.
#include "../cases.h"

#include <torch/torch.h>

#include <array>
#include <vector>

void device_pointer_claims_host_bad() {
  auto state = torch::rand({2, 2}, torch::kCUDA);
  auto view = torch::from_blob(state.data_ptr(), {2, 2}); // [[device-host-access]]
  auto sum = view.sum();
  (void)sum;
}

void device_pointer_with_options_ok() {
  auto state = torch::rand({2, 2}, torch::kCUDA);
  auto view = torch::from_blob(state.data_ptr(), {2, 2}, state.options());
  auto sum = view.sum() + state.sum();
  (void)sum;
}

void host_vector_claims_device_bad() {
  std::vector<float> image(12, 0.5f);
  auto input = torch::from_blob(image.data(), {1, 3, 2, 2}, torch::kCUDA); // [[device-host-access]]
  (void)input;
}

void host_vector_moved_ok() {
  std::vector<float> image(12, 0.5f);
  auto input = torch::from_blob(image.data(), {1, 3, 2, 2}).to(torch::kCUDA);
  (void)input;
}

void host_array_claims_device_bad() {
  float pixels[4] = {1, 2, 3, 4};
  const auto options = torch::TensorOptions().dtype(torch::kFloat).device(torch::kCUDA, 0);
  auto input = torch::from_blob(pixels, {4}, options); // [[device-host-access]]
  (void)input;
}

void host_array_ok() {
  float pixels[4] = {1, 2, 3, 4};
  const auto options = torch::TensorOptions().dtype(torch::kFloat);
  auto input = torch::from_blob(pixels, {4}, options).clone().cuda();
  (void)input;
}

DT_MAIN(device_pointer_claims_host_bad, device_pointer_with_options_ok, host_vector_claims_device_bad,
        host_vector_moved_ok, host_array_claims_device_bad, host_array_ok)
