//===- DeviceDiscardedMove.h - a moved tensor is lost -----------*- C++ -*-===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

/// The result of Tensor::to and its relatives, which leave their tensor where it is, is thrown away.
class DeviceDiscardedMove : public Check {
public:
  std::string_view name() const override { return "device-discarded-move"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
