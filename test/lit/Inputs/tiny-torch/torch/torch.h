// A few names of LibTorch, for tests of the command line that need a finding but no LibTorch.
#pragma once

namespace c10 {
enum class DeviceType : signed char { CPU = 0, CUDA = 1 };
struct Device {
  Device(DeviceType type, signed char index = -1);
};
} // namespace c10

namespace at {
constexpr c10::DeviceType kCPU = c10::DeviceType::CPU, kCUDA = c10::DeviceType::CUDA;
class Tensor {
public:
  Tensor to(c10::Device device, bool nonBlocking = false) const;
  Tensor cpu() const;
  Tensor cuda() const;
};
} // namespace at

namespace torch {
using at::kCPU;
using at::kCUDA;
using at::Tensor;
using c10::Device;
} // namespace torch
