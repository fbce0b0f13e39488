//===- NoLintPlanner.h - plans NOLINT comments ------------------*- C++ -*-===//
//
// Makes the change that adds a NOLINT comment for a finding.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"
#include "analyzer/report/source/Source.h"
#include "analyzer/report/source/Tokens.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace devicetidy {

/// Plans the comment, NOLINT or in Python noqa, that suppresses a finding, and nothing else on its line.
class NoLintPlanner {
public:
  /// Reads texts from `sources`, which must not change while this object lives.
  explicit NoLintPlanner(SourceCache &sources) : sources(sources) {}

  /// Adds the check of `diagnostic` to the list of such a comment on the line that suppresses it, or a
  /// comment at the end of the line. Nothing where the line ends in a string, in an open comment, or in a
  /// backslash, and for diagnostics that no comment suppresses.
  std::optional<Fix> plan(const Diagnostic &diagnostic);

private:
  /// Where something is added, and what.
  struct Addition {
    std::size_t place;
    std::string text;
  };
  std::optional<Addition> planCxx(Name file, std::size_t begin, std::size_t end, const std::string &check);
  std::optional<Addition> planPython(Name file, std::size_t begin, std::size_t end, const std::string &check);
  const std::vector<Token> &tokensOf(Name file);

  SourceCache &sources;
  std::map<Name, std::vector<Token>> tokens;
};

} // namespace devicetidy
