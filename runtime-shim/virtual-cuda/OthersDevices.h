//===- OthersDevices.h - memory on devices of other ranks -------*- C++ -*-===//
//
// Each rank of a job has a device of its own, that of its local rank. What it allocates on another is told at
// its end, with the place of the largest allocation; device-run knows whether another rank used that device.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CallStack.h"

#include <c10/util/Optional.h>

namespace vcuda {

/// Whether this process is one of several ranks on this machine that see the same devices.
bool isOneOfManyRanks();

void noteAllocation(int device, size_t bytes);

struct LargestAllocation {
  size_t bytes;
  CallStack stack;
};
/// Nothing for the rank's own device.
c10::optional<LargestAllocation> largestAllocation(int device);

} // namespace vcuda
