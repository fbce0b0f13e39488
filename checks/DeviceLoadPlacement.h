//===- DeviceLoadPlacement.h - loaded onto the wrong device -----*- C++ -*-===//
//
// Reports: something that was loaded without a device meets a tensor on one. See
// docs/checks/device-load-placement.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

/// What was loaded without a device, and so is where it was saved, meets a tensor on a device of the
/// program's.
class DeviceLoadPlacement : public Check {
public:
  std::string_view name() const override { return "device-load-placement"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
