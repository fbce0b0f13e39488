//===- Sharding.h - a part of the translation units -------------*- C++ -*-===//
//
// Implements --shard: selects one of N equal parts of the compile commands.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/input/CompileDatabase.h"
#include "analyzer/facts/FactsFile.h"

#include <vector>

namespace devicetidy::driver {

/// One of the equal parts a list of translation units is split into; `index` is 1 .. `count`.
struct Shard {
  unsigned index = 0, count = 0; ///< both 0: the whole list
};

/// Keeps the commands of one part. Files are distributed in the order of their names, so the parts are
/// equally large and do not depend on the order of the compile database; all commands of a file are in the
/// same part.
ShardMark keepShard(std::vector<CompileCommand> &commands, const Shard &shard);

} // namespace devicetidy::driver
