//===- GradientHook.h - calls back when a gradient is ready -----*- C++ -*-===//
//
// A callback for when backward() has the gradient of a parameter.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "autograd/NodePointer.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace device_shim::detail {

/// Autograd adds up a parameter's gradient in a node, its accumulator, on which the hook is. LibTorch gives
/// the parameter a new one when torch::load() fills it or Module::to() changes its type: the hook is lost
/// then.
class GradientHook {
public:
  /// `ready` runs after each time, on a thread of autograd, and `coming` before the parameter has the
  /// gradient. \param wrapper says in messages who asked for it.
  GradientHook(at::Tensor parameter, std::string name, const char *wrapper, std::function<void()> ready,
               const std::function<void()> &coming = {});
  ~GradientHook();
  GradientHook(const GradientHook &) = delete;
  GradientHook &operator=(const GradientHook &) = delete;

  const std::string &ofParameter() const { return name; }
  /// Whether the next graph will not call the hook. Never of a parameter that is frozen now.
  bool lost() const;
  /// Makes the graphs that come call it.
  void renew();

private:
  void attach();
  void refuseOther() const;

  at::Tensor parameter;
  std::string name;
  const char *wrapper;
  std::function<void()> ready;
  NodePointer accumulator; ///< lives as long as someone holds it, and the hook with it
  uintptr_t after = 0;
  unsigned before = 0;
};

} // namespace device_shim::detail
