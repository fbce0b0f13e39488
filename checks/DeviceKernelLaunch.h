//===- DeviceKernelLaunch.h - kernels and their memory ----------*- C++ -*-===//
//
// Reports: a kernel gets the memory of a tensor that is not on a GPU. See
// docs/checks/device-kernel-launch.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

/// A kernel is launched with a pointer into a tensor that is not on a GPU.
class DeviceKernelLaunch : public Check {
public:
  std::string_view name() const override { return "device-kernel-launch"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
