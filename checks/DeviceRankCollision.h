//===- DeviceRankCollision.h - device-rank-collision ------------*- C++ -*-===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

class DeviceRankCollision : public Check {
public:
  std::string_view name() const override { return "device-rank-collision"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
