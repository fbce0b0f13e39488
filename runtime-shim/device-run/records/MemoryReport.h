//===- MemoryReport.h - how much of --gpu-memory was used -------*- C++ -*-===//
//
// Reads how much memory each rank used on each virtual GPU, and prints it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace devicerun {

/// The most bytes that each rank had on each device.
using MemoryPeaks = std::map<std::pair<int, std::string>, std::uint64_t>;

/// Reads the memory records in `folder`; ranks that were killed have written none.
MemoryPeaks readMemoryPeaks(const std::string &folder);

/// A line per rank and device, and one for each device where ranks met: the limit holds for each process, but
/// a GPU has to hold what all of them need.
std::string describeMemory(const MemoryPeaks &peaks, std::uint64_t limit);

} // namespace devicerun
