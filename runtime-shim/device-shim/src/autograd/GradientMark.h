//===- GradientMark.h - detects changes of gradients ------------*- C++ -*-===//
//
// How what a program does to the gradients of a module is seen, where these are kept elsewhere.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace device_shim::detail {

/// Takes the place of the gradient of a parameter. Module::zero_grad() clears or drops it, as it would do
/// with the gradient. A program that reads it gets a NaN, and shapes that do not fit.
class GradientMark {
public:
  GradientMark(at::Tensor parameter, std::string name);
  /// Leaves the parameter without it.
  ~GradientMark();
  GradientMark(const GradientMark &) = delete;
  GradientMark &operator=(const GradientMark &) = delete;

  /// Where the parameter has no gradient. `linked`: the one whose place it takes had a graph of its own, as
  /// with create_graph = true; the backward() of a loss that uses the mark then throws UsageError.
  void place(bool linked);

  enum class Found { nothing, untouched, zeroed, dropped, changed };
  /// What became of it since place(); `changed`: in another way. The parameter has no gradient then.
  Found take();

private:
  at::Tensor parameter;
  std::string name;
  at::Tensor mark; ///< on the host
  bool placed = false;
};

/// A gradient of the same kind, for tensors that get none any more: optimizers throw c10::Error at it.
at::Tensor gradientOfNothing();

} // namespace device_shim::detail
