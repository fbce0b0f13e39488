//===- FactsFile.h - facts as they travel between two runs ------*- C++ -*-===//
//
// What --emit-facts=FILE writes and --link reads: units, and all that reporting on them needs which does not
// follow from the units themselves.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <cstdint>
#include <vector>

namespace devicetidy {

/// A project file as it was when it was read. A run that links later quotes it only if it is still the same.
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
  std::vector<Unit> units;          ///< Unit::files names project files only
  std::vector<Name> roots;          ///< project directories, the one that reports name files from first
  std::vector<SourceState> sources; ///< project files that the units read, by path
  ShardMark shard;
};

} // namespace devicetidy
