//===- DeviceCheck.h - device checks of operators ---------------*- C++ -*-===//
//
// The device checks a CUDA build makes before a kernel runs, with CUDA's texts.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "OpTable.h"

#include <c10/core/Device.h>

namespace vcuda {

struct Placement {
  c10::Device device; ///< the device the kernel works for
  bool mixed;         ///< a foreach list that has to be handled tensor by tensor
};

/// Throws what CUDA throws when the arguments' devices do not fit the operator.
Placement checkDevices(const OpInfo &info, const c10::IValue *values);

} // namespace vcuda
