//===- LineFilter.h - limits a report to some lines -------------*- C++ -*-===//
//
// The filter for --line-filter and --changed-since.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace devicetidy {

/// Passes the diagnostics that touch certain lines, with their own place or with one of their notes, because
/// the changed line may be the one that moved a tensor.
class LineFilter {
public:
  /// First and last line.
  using Range = std::pair<std::uint32_t, std::uint32_t>;
  static constexpr Range allLines{1, UINT32_MAX};

  /// Passes `range` in the file with this path, which is absolute and free of symbolic links.
  void addPath(const std::string &path, Range range);

  /// Adds what --line-filter is given: [{"name": "file.cpp", "lines": [[1, 3], [5, 7]]}, {"name": "file.h"}].
  /// As in clang-tidy a name matches every path that ends with it, the first match decides, and an entry
  /// without lines means all lines. False, with a sentence in `error`, for any other text.
  bool addJson(const std::string &json, std::string &error);

  /// Says where a place is in its file, when that is not the place itself.
  std::function<Location(const Location &)> inFile;

  bool passes(const Diagnostic &diagnostic);
  bool passes(const Location &place);
  /// Can a line of the file pass?
  bool hasLinesOf(Name file) { return file && rangesOf(file) != nullptr; }

private:
  struct Suffix {
    std::string name;
    std::vector<Range> ranges;
  };
  const std::vector<Range> *rangesOf(Name file);

  std::map<std::string, std::vector<Range>> paths;
  std::vector<Suffix> suffixes;
  std::map<Name, const std::vector<Range> *> known; ///< null: no line of the file passes
};

} // namespace devicetidy
