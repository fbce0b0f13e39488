// Enough of LibTorch's names for operations, factories, losses and modules, so that tests of reports need no
// LibTorch. Nothing here is ever run.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace c10 {
enum class DeviceType : signed char { CPU = 0, CUDA = 1 };
enum class ScalarType : signed char { Float = 6, Long = 4 };
struct Device {
  Device(DeviceType type, signed char index = -1);
};
struct IntArrayRef {
  IntArrayRef(std::initializer_list<long> sizes);
};
struct TensorOptions {
  TensorOptions();
  TensorOptions(Device device);
  TensorOptions(DeviceType type);
  TensorOptions(ScalarType type);
  TensorOptions device(Device device) const;
  TensorOptions requires_grad(bool value = true) const;
};
TensorOptions requires_grad(bool value = true);
} // namespace c10

namespace at {
constexpr c10::DeviceType kCPU = c10::DeviceType::CPU, kCUDA = c10::DeviceType::CUDA;
constexpr c10::ScalarType kFloat = c10::ScalarType::Float, kLong = c10::ScalarType::Long;
class Tensor {
public:
  Tensor();
  Tensor to(c10::Device device, bool nonBlocking = false) const;
  Tensor to(c10::ScalarType type) const;
  Tensor cpu() const;
  Tensor cuda() const;
  Tensor clone() const;
  Tensor add(const Tensor &other) const;
  Tensor &add_(const Tensor &other) const;
  Tensor matmul(const Tensor &other) const;
  Tensor view(c10::IntArrayRef sizes) const;
  Tensor operator[](long index) const;
  Tensor &operator+=(const Tensor &other);
  c10::Device device() const;
  c10::TensorOptions options() const;
};
Tensor operator+(const Tensor &a, const Tensor &b);
Tensor operator*(const Tensor &a, const Tensor &b);
Tensor operator*(const Tensor &a, double b);
} // namespace at

namespace torch {
using namespace at;
using c10::Device;
using c10::requires_grad;
using c10::TensorOptions;
bool allclose(const at::Tensor &a, const at::Tensor &b);
at::Tensor zeros(c10::IntArrayRef size, TensorOptions options = {});
at::Tensor ones(c10::IntArrayRef size, TensorOptions options = {});
at::Tensor randn(c10::IntArrayRef size, TensorOptions options = {});
at::Tensor cat(std::initializer_list<at::Tensor> tensors, long dim = 0);
at::Tensor matmul(const at::Tensor &a, const at::Tensor &b);
at::Tensor mse_loss(const at::Tensor &input, const at::Tensor &target);
namespace nn {
class Module {
public:
  virtual ~Module();
  virtual void to(c10::Device device, bool nonBlocking = false);
  at::Tensor &register_parameter(std::string name, at::Tensor tensor, bool requiresGrad = true);
  at::Tensor &register_buffer(std::string name, at::Tensor tensor);
  template <typename M> std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    return module;
  }
  std::vector<at::Tensor> parameters(bool recurse = true) const;
};
template <typename Derived> class Cloneable : public Module {
public:
  virtual void reset() = 0;
};
} // namespace nn
} // namespace torch
