//===- DeviceHostAccess.h - host code uses the memory of a GPU --*- C++ -*-===//
//
// Reports: host code uses the memory of a tensor on a GPU, or from_blob gets the wrong device. See
// docs/checks/device-host-access.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

/// Host code reads or writes the memory of a tensor on a GPU, or from_blob takes memory for that of another
/// device.
class DeviceHostAccess : public Check {
public:
  std::string_view name() const override { return "device-host-access"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
