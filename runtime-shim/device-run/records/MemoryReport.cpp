#include "records/MemoryReport.h"

#include "base/Text.h"
#include "records/Records.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace devicerun {

MemoryPeaks readMemoryPeaks(const std::string &folder) {
  MemoryPeaks peaks;
  readRecords(folder, "errors", [&](const RecordSource &source, const nlohmann::json &record) {
    if (textOf(record, "kind") != "memory")
      return;
    std::uint64_t &peak = peaks[{source.rank, textOf(record, "device")}];
    peak = std::max(peak, countOf(record, "peak"));
  });
  return peaks;
}

std::string describeMemory(const MemoryPeaks &peaks, std::uint64_t limit) {
  struct Shared {
    int ranks = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, Shared> devices;
  std::string text;
  for (const auto &[where, bytes] : peaks) {
    text += fmt::format("  rank {}: at most {} of {} on {}\n", where.first, formatBytes(bytes),
                        formatBytes(limit), where.second);
    Shared &device = devices[where.second];
    ++device.ranks;
    device.bytes += bytes;
  }
  for (const auto &[name, device] : devices)
    if (device.ranks > 1)
      text += fmt::format("  {} ranks shared {}: together up to {}{}\n", device.ranks, name,
                          formatBytes(device.bytes),
                          device.bytes > limit ? ", more than the GPU has; the limit is per rank" : "");
  return text;
}

} // namespace devicerun
