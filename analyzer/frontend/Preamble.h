//===- Preamble.h - third-party headers, parsed once ------------*- C++ -*-===//
//
// A precompiled header that this program makes for itself: bodies are skipped in it as in any unit, so it is
// small, and no other compiler could use it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/FileTrace.h"
#include "analyzer/frontend/Lower.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace devicetidy::frontend {

struct Preamble {
  std::string headerFile;                 ///< its text: only #include lines
  std::string binaryFile;                 ///< what clang made of it
  std::vector<Name> sources;              ///< files that are part of it, sorted
  FileTrace trace;                        ///< all that making it looked at
  std::vector<std::uint32_t> identifiers; ///< of each word its text has outside of comments, the hash; sorted
};

/// The hash of one word.
std::uint32_t identifierHash(std::string_view word);

/// Parses preamble.headerFile with `arguments` (argv[0] included, no source file), run in `directory`, into
/// preamble.binaryFile, and fills in what it was made from. False when any of it is in error or belongs to
/// the project; then nothing is left behind.
bool buildPreamble(const std::string &directory, const std::vector<std::string> &arguments,
                   const LowerOptions &options, Preamble &preamble);

/// `arguments` without what is included by force: a preamble comes before that.
std::vector<std::string> withoutForcedIncludes(const std::vector<std::string> &arguments);

} // namespace devicetidy::frontend
