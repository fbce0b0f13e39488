//===- FactsFile.h - facts as they travel between two runs ------*- C++ -*-===//
//
// The contents of a file that --emit-facts writes and --link reads: units, and what a report needs in
// addition to them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <cstdint>
#include <vector>

namespace devicetidy {

/// The state of a project file when it was read. A later run with --link quotes it only if it is unchanged.
struct SourceState {
  Name path;
  std::uint64_t digestHigh = 0, digestLow = 0; ///< of its bytes; both 0 when it could not be read again
};

/// Which part of a list of translation units a file holds. Parts fit together when all but `index` is equal.
struct ShardMark {
  std::uint32_t index = 0, count = 0;      ///< 1 .. count; both 0 when the list was not split
  std::uint64_t total = 0;                 ///< units in the whole list
  std::uint64_t listHigh = 0, listLow = 0; ///< digest of the list
};

struct FactsFile {
  std::vector<Unit> units; ///< Unit::files names project files only
  std::vector<Name>
      roots; ///< project directories, the one that file names in reports are relative to comes first
  std::vector<SourceState> sources; ///< project files that the units read, by path
  ShardMark shard;
};

} // namespace devicetidy
