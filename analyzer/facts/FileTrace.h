//===- FileTrace.h - what a parse looked at on disk -------------*- C++ -*-===//
//
// Everything on disk that the facts of a unit depend on: the files that were read, the places where a header
// was looked for and not found, and the directories whose contents were listed. The cache checks whether all
// of them are unchanged.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Name.h"

#include <cstdint>
#include <string>
#include <vector>

namespace devicetidy {

struct FileTrace {
  /// The state of a file when it was read.
  struct Read {
    Name path; ///< absolute, without "." and ".."
    std::uint64_t size = 0, inode = 0;
    std::int64_t modified = 0; ///< nanoseconds since the epoch
  };

  std::vector<Read> reads;              ///< by path, each once
  std::vector<std::string> absent;      ///< absolute paths that named nothing, sorted
  std::vector<std::string> directories; ///< absolute paths that were listed, sorted
};

} // namespace devicetidy
