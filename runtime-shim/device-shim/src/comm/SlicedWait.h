//===- SlicedWait.h - waits that notice a failure ---------------*- C++ -*-===//
//
// Waiting on the host for a work of c10d, in slices, between which the failure of another rank is noticed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Compat.h"
#include "comm/Liveness.h"

#include <chrono>

namespace device_shim::detail {

constexpr auto kSlice = std::chrono::milliseconds(100);

/// Waits for `work`, at most `timeout`. `liveness` may be null. \throws PeerError when the job fails or the
/// timeout passes, which is a failure of the job then; what the work throws.
void waitInSlices(c10d::Work &work, const char *operation, Liveness *liveness,
                  std::chrono::milliseconds timeout);

} // namespace device_shim::detail
