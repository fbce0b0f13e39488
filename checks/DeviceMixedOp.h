//===- DeviceMixedOp.h - tensors on different devices -----------*- C++ -*-===//
//
// Reports: an operation gets tensors on different devices. See docs/checks/device-mixed-op.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

/// An operation gets tensors on different devices. Losses have a check of their own.
class DeviceMixedOp : public Check {
public:
  std::string_view name() const override { return "device-mixed-op"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
