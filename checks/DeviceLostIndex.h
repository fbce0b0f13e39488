//===- DeviceLostIndex.h - device-lost-index --------------------*- C++ -*-===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

class DeviceLostIndex : public Check {
public:
  std::string_view name() const override { return "device-lost-index"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
