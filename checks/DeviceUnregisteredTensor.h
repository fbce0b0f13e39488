//===- DeviceUnregisteredTensor.h - unregistered members --------*- C++ -*-===//
//
// Reports: a tensor or submodule member is not registered, so Module::to does not move it. See
// docs/checks/device-unregistered-tensor.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

/// A tensor or submodule member that Module::to does not move meets one that it does.
class DeviceUnregisteredTensor : public Check {
public:
  std::string_view name() const override { return "device-unregistered-tensor"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
