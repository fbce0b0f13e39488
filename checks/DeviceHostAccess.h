//===- DeviceHostAccess.h - device-host-access ------------------*- C++ -*-===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

class DeviceHostAccess : public Check {
public:
  std::string_view name() const override { return "device-host-access"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
