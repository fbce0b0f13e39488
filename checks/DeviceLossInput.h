//===- DeviceLossInput.h - a loss with tensors on two devices ---*- C++ -*-===//
//
// Reports: a loss gets prediction and target (or weights) on different devices. See
// docs/checks/device-loss-input.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

/// A loss gets its prediction and its target (or its weights) on different devices.
class DeviceLossInput : public Check {
public:
  std::string_view name() const override { return "device-loss-input"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
