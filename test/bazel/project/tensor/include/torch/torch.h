// A few names of LibTorch, enough to compile and link with.
#pragma once
namespace c10 {
struct Device {};
} // namespace c10
namespace at {
class Tensor {
public:
  Tensor to(c10::Device) const { return *this; }
  Tensor cuda() const { return *this; }
  c10::Device device() const { return {}; }
};
inline Tensor operator+(const Tensor &a, const Tensor &) { return a; }
} // namespace at
namespace torch {
inline at::Tensor ones(int) { return {}; }
} // namespace torch
