//===- DeviceDiscardedMove.h - a move without effect ------------*- C++ -*-===//
//
// Reports: the result of Tensor::to, cpu, cuda or type_as is discarded. See
// docs/checks/device-discarded-move.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

/// The result of Tensor::to or a similar method, which does not change its tensor, is discarded.
class DeviceDiscardedMove : public Check {
public:
  std::string_view name() const override { return "device-discarded-move"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
