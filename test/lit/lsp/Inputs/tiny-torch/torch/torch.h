// A few names of LibTorch, enough for tensors that meet on the wrong device.
#pragma once

#include <initializer_list>

namespace c10 {
enum class DeviceType : signed char { CPU = 0, CUDA = 1 };
struct Device {
  Device(DeviceType type, signed char index = -1);
};
struct TensorOptions {
  TensorOptions();
  TensorOptions(DeviceType type);
  TensorOptions(Device device);
};
template <typename T> struct ArrayRef {
  ArrayRef(const std::initializer_list<T> &list);
};
} // namespace c10

namespace at {
constexpr c10::DeviceType kCPU = c10::DeviceType::CPU, kCUDA = c10::DeviceType::CUDA;
using IntArrayRef = c10::ArrayRef<long>;
class Tensor {
public:
  Tensor to(c10::Device device, bool nonBlocking = false) const;
  Tensor cpu() const;
  Tensor cuda() const;
  c10::Device device() const;
};
Tensor operator+(const Tensor &a, const Tensor &b);
} // namespace at

namespace torch {
using at::kCPU;
using at::kCUDA;
using at::Tensor;
using c10::Device;
at::Tensor randn(at::IntArrayRef size, c10::TensorOptions options = {});
namespace nn {
class Module {
public:
  virtual ~Module();
  at::Tensor &register_parameter(const char *name, at::Tensor tensor);
  void to(c10::Device device, bool nonBlocking = false);
};
} // namespace nn
} // namespace torch
