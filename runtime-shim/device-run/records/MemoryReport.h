//===- MemoryReport.h - how much memory the ranks used -----------*- C++ -*-===//
//
// Reads how much memory each rank used on each virtual GPU, and prints it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "records/Frame.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace devicerun {

struct MemoryPeak {
  std::uint64_t bytes = 0;
  std::uint64_t largest = 0;      ///< of one allocation; 0 on the rank's own device
  std::vector<std::string> stack; ///< where that was
};

/// The most bytes that each rank had on each device.
using MemoryPeaks = std::map<std::pair<int, std::string>, MemoryPeak>;

/// Reads the memory records in `folder`; ranks that were killed have written none.
MemoryPeaks readMemoryPeaks(const std::string &folder);

/// A line per rank and device, and one for each device where ranks met: the limit holds for each process, but
/// a GPU has to hold what all of them need.
std::string describeMemory(const MemoryPeaks &peaks, std::uint64_t limit);

/// A line for each rank and device that is another rank's, which used it too. `firstRank`: the rank whose
/// device is cuda:0.
std::string describeForeignMemory(const MemoryPeaks &peaks, int firstRank, FrameResolver &resolver);

} // namespace devicerun
