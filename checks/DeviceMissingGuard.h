//===- DeviceMissingGuard.h - work on a GPU that is not current -*- C++ -*-===//
//
// Reports: a kernel runs on the current GPU, and nothing makes the one of its memory current. See
// docs/checks/device-missing-guard.md.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checks/Check.h"

namespace devicetidy {

/// Work on a GPU runs on whichever GPU is current; the memory it gets is on one that the caller decides, or
/// on another.
class DeviceMissingGuard : public Check {
public:
  std::string_view name() const override { return "device-missing-guard"; }
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
};

} // namespace devicetidy
