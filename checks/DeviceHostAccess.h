//===- DeviceHostAccess.h - the host in a GPU's memory ----------*- C++ -*-===//
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
