//===- ReadUnits.h - translation units, read in parallel --------*- C++ -*-===//
//
// Turns compile commands into units: from the cache where possible, otherwise by parsing, in several
// threads.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/UnitCache.h"
#include "analyzer/driver/input/ProjectFiles.h"
#include "analyzer/facts/Program.h"

#include <vector>

namespace devicetidy::driver {

struct ReadOptions {
  unsigned jobs = 0;                 ///< 0: as many as processors and memory allow
  bool showProgress = false;         ///< on standard error, which is a terminal
  cache::UnitCache *cache = nullptr; ///< null: everything is parsed
  /// Where preambles are kept, if only for this run; null: none are made.
  cache::BlobStore *store = nullptr;
  cache::FileStates *states = nullptr; ///< goes with the store
};

struct ReadCounts {
  std::size_t parsed = 0, fromCache = 0;
  std::size_t preamblesMade = 0, withPreamble = 0;
  std::size_t preambleFallbacks = 0; ///< units that had errors with their preamble and were parsed without

  void operator+=(const ReadCounts &other) {
    parsed += other.parsed;
    fromCache += other.fromCache;
    preamblesMade += other.preamblesMade;
    withPreamble += other.withPreamble;
    preambleFallbacks += other.preambleFallbacks;
  }
};

/// Units in the order of the commands they were read from.
struct UnitSet {
  std::vector<Unit> units;
  std::vector<cache::Digest> facts; ///< of each unit; all zero without a cache
  ReadCounts counts;
  std::size_t asked = 0; ///< how many were requested; they come first, the rest is context
  std::size_t total = 0; ///< how many there are
};

/// Lowers every command to facts, or takes them from the cache. The result has the order of `commands`
/// for any number of jobs; a unit the frontend crashed on comes back with a fatal error.
UnitSet readUnits(const std::vector<CompileCommand> &commands, const ProjectFiles &project,
                  const ReadOptions &options);

/// As many jobs as processors and memory allow.
unsigned defaultJobs();

/// Only the units whose facts are in the cache and up to date.
UnitSet readCachedUnits(const std::vector<CompileCommand> &commands, const ReadOptions &options);

} // namespace devicetidy::driver
