//===- DeviceDanglingData.h - pointers into tensors that are gone -*- C++ -*-===//
//
// Reports: a pointer into the memory of a temporary tensor is kept. See docs/checks/device-dangling-data.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

/// A pointer from data_ptr() of a temporary tensor is used after the statement that made the tensor.
class DeviceDanglingData : public Check {
public:
  std::string_view name() const override { return "device-dangling-data"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
