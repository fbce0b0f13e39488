//===- Preamble.h - third-party headers, parsed once ------------*- C++ -*-===//
//
// A precompiled header for the use of this program only: bodies are skipped in it as in any unit, so it is
// small, and no compiler could use it.
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
  FileTrace trace;                        ///< all files that its parse accessed
  std::vector<std::uint32_t> identifiers; ///< the hashes of all words in its text outside of comments, sorted
};

/// The hash of one word.
std::uint32_t identifierHash(std::string_view word);

/// Parses preamble.headerFile with `arguments` (argv[0] included, no source file), run in `directory`, into
/// preamble.binaryFile, and fills in what it was made from. False when it has errors or includes project
/// files; then no file is left behind.
bool buildPreamble(const std::string &directory, const std::vector<std::string> &arguments,
                   const LowerOptions &options, Preamble &preamble);

/// `arguments` without forced includes: a preamble comes before them.
std::vector<std::string> withoutForcedIncludes(const std::vector<std::string> &arguments);

} // namespace devicetidy::frontend
