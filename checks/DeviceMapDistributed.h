//===- DeviceMapDistributed.h - a placement map in a distributed program -*- C++ -*-===//
//
// Reports: a placement map reaches a model loader in a distributed program. See
// docs/checks/device-map-distributed.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

/// A model spread by a placement map is loaded by a program that also initialises distributed training.
class DeviceMapDistributed : public Check {
public:
  std::string_view name() const override { return "device-map-distributed"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
