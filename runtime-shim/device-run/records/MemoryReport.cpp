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
    MemoryPeak &peak = peaks[{source.rank, textOf(record, "device")}];
    peak.bytes = std::max(peak.bytes, countOf(record, "peak"));
    if (const std::uint64_t largest = countOf(record, "largest"); largest > peak.largest) {
      peak.largest = largest;
      peak.stack = textsOf(record, "stack");
    }
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
  for (const auto &[where, peak] : peaks) {
    text += fmt::format("  rank {}: at most {} of {} on {}\n", where.first, formatBytes(peak.bytes),
                        formatBytes(limit), where.second);
    Shared &device = devices[where.second];
    ++device.ranks;
    device.bytes += peak.bytes;
  }
  for (const auto &[name, device] : devices)
    if (device.ranks > 1)
      text += fmt::format("  {} ranks shared {}: together up to {}{}\n", device.ranks, name,
                          formatBytes(device.bytes),
                          device.bytes > limit ? ", more than the GPU has; the limit is per rank" : "");
  return text;
}

std::string describeForeignMemory(const MemoryPeaks &peaks, int firstRank, FrameResolver &resolver) {
  for (const auto &[where, peak] : peaks)
    for (const std::string &frame : peak.stack)
      resolver.want(frame);
  std::string text;
  for (const auto &[where, peak] : peaks) {
    const auto index = parseInteger(where.second.substr(where.second.find(':') + 1));
    const int owner = firstRank + static_cast<int>(index.value_or(-1));
    if (peak.largest == 0 || owner == where.first || peaks.count({owner, where.second}) == 0)
      continue;
    const std::optional<Frame> place = resolver.innermost(peak.stack, "");
    text += fmt::format("  rank {} allocated {} on {}, the device of rank {}{}\n", where.first,
                        formatBytes(peak.bytes), where.second, owner,
                        place ? ", most at " + displayPlace(*place) : "");
  }
  return text;
}

} // namespace devicerun
