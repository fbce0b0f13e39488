// The GPU of a number that the program has made current, and the device of that number.
#include <torch/torch.h>

#include <cstdlib>

#include "../cases.h"

#ifdef DT_RUN // LibTorch for the CPU has no header of CUDA that can be compiled
#include <c10/core/impl/VirtualGuardImpl.h>
namespace c10::cuda {
inline void set_device(int number) {
  impl::VirtualGuardImpl(kCUDA).setDevice(Device(kCUDA, static_cast<DeviceIndex>(number)));
}
} // namespace c10::cuda
#else
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace {

int chosen() {
  const char *number = std::getenv("CHOSEN_GPU");
  return number ? std::atoi(number) : 1;
}

torch::Tensor on_current(int number) {
  c10::cuda::set_device(number);
  const auto left = torch::ones({2, 2}, torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(number)));
  return torch::matmul(left, torch::ones({2, 2}, torch::kCUDA));
}

class Worker {
public:
  explicit Worker(int rank) : rank(rank), device(torch::kCPU) {}
  void initialize() {
    c10::cuda::set_device(rank);
    device = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(rank));
    weight = torch::ones({2, 2}, torch::TensorOptions(torch::kCUDA));
    bias = torch::zeros({2});
  }
  torch::Tensor project(const torch::Tensor &x) { return torch::matmul(x.to(device), weight); }
  torch::Tensor shift(const torch::Tensor &x) {
    return x.to(device) + bias; // [[device-mixed-op]]
  }

private:
  int rank;
  torch::Device device;
  torch::Tensor weight, bias;
};

} // namespace

void current_number_ok() { on_current(chosen()); }

void worker_projects_ok() {
  Worker worker(chosen());
  worker.initialize();
  worker.project(torch::ones({2, 2}));
}

void worker_shifts_bad() {
  Worker worker(chosen());
  worker.initialize();
  worker.shift(torch::ones({2, 2}));
}

// It is there already: the copy that is thrown away changes nothing.
void moved_where_it_is_ok() {
  const auto x = torch::ones({2}, torch::Device(torch::kCUDA, 1));
  auto y = torch::zeros_like(x);
  y.to(x.device());
  y.add_(x);
}

DT_MAIN(current_number_ok, worker_projects_ok, worker_shifts_bad, moved_where_it_is_ok)
