//===- NoLint.h - findings that comments suppress ---------------*- C++ -*-===//
//
// NOLINT, NOLINTNEXTLINE, NOLINTBEGIN and NOLINTEND with the grammar of clang-tidy, so that one comment
// works for both tools. Unlike in clang-tidy, NOLINT in a string has no effect.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"
#include "analyzer/report/source/Source.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace devicetidy {

/// What a suppressing comment names. Without a list it names every check, with an empty one none.
struct NoLintGlobs {
  bool all = true;
  std::vector<std::string> globs; ///< as written, without white space

  /// `*` stands for anything. A glob with a leading `-` is ignored, as clang-tidy does: a comment only
  /// ever adds to what is suppressed.
  bool matches(std::string_view check) const;
  friend bool operator==(const NoLintGlobs &a, const NoLintGlobs &b) {
    return a.all == b.all && a.globs == b.globs;
  }
};

/// The suppressions of one file.
struct NoLintFile {
  struct Line {
    std::uint32_t line;            ///< the line it applies to
    std::uint32_t written, column; ///< where the comment is
    NoLintGlobs globs;
  };
  struct Block {
    std::uint32_t line, column, endLine, endColumn; ///< from its BEGIN to its END
    NoLintGlobs globs;
  };
  struct Unmatched {
    std::uint32_t line, column;
    bool isBegin;
  };
  std::vector<Line> lines;
  std::vector<Block> blocks;
  std::vector<Unmatched> unmatched; ///< in the order of the file

  /// Does this comment alone suppress it?
  static bool covers(const Line &comment, std::string_view check, std::uint32_t line, std::uint32_t column);
  static bool covers(const Block &comment, std::string_view check, std::uint32_t line, std::uint32_t column);
  bool suppressesLine(std::string_view check, const Location &where) const; ///< a comment on the line does
  bool suppressesPart(std::string_view check, const Location &where) const; ///< a BEGIN before it does
};

/// Reads the suppressing comments of `source`. Blocks nest: an END closes the BEGIN before it, and both must
/// name the same list of checks. In Python, `# noqa: checks` is one, too.
NoLintFile readNoLint(std::string_view source, bool isPython = false);

/// Marks the diagnostics that a comment suppresses. Each is a mistake: a comment stands on the line of its
/// cause, which is the line of the diagnostic where nothing else is known, or around either of them. One on a
/// line that several callers share would hide what others do wrong later; it has no effect, and a note says
/// so. Also adds an error for every BEGIN without an END and every END without a BEGIN in the files the
/// diagnostics are in. Keeps the order by place. Returns how many are suppressed.
std::size_t applyNoLint(std::vector<Diagnostic> &diagnostics, SourceCache &sources);

/// The check that the errors about unmatched comments are reported under.
inline constexpr std::string_view noLintCheck = "device-tidy-nolint";

} // namespace devicetidy
