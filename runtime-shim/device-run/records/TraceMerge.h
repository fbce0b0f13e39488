//===- TraceMerge.h - one Chrome trace of all ranks -------------*- C++ -*-===//
//
// Merges the traces of all ranks into one file, and sums up the copies between devices.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "records/Frame.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace devicerun {

/// Copies and their bytes.
struct Traffic {
  std::uint64_t bytes = 0;
  std::uint64_t copies = 0;

  void add(std::uint64_t more) {
    bytes += more;
    ++copies;
  }
};

/// What a trace adds up to, over all ranks.
struct TraceSummary {
  using Route = std::pair<std::string, std::string>; ///< from, to
  std::uint64_t operators = 0;
  std::map<Route, Traffic> routes;
  std::map<Route, std::map<std::string, Traffic>> sites;      ///< by "file:line function"
  std::map<std::pair<int, std::string>, std::uint64_t> peaks; ///< bytes, by rank and device
};

/// Writes the trace records of `folder` to `file` in the Trace Event Format ("JSON Object Format", complete
/// events) that chrome://tracing and ui.perfetto.dev read: a process per rank, in it a track per host thread
/// with its operators, its copies and its device errors. Times start at 0. Throws RunError(ExitLauncher) when
/// the file cannot be written; then none is left behind.
TraceSummary mergeTrace(const std::string &folder, const std::string &file, FrameResolver &resolver);

/// Bytes moved between which devices and by which lines, most first. Several lines.
std::string describeTraffic(const TraceSummary &summary);

} // namespace devicerun
