//===- Gate.h - which findings count ----------------------------*- C++ -*-===//
//
// A project with existing findings can reject new ones: those that are not in a baseline, or those that touch
// changed lines.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/options/Options.h"
#include "analyzer/report/diagnostic/LineFilter.h"
#include "analyzer/report/formats/Baseline.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::driver {

class Gate {
public:
  explicit Gate(const Options &options) : options(options) {}

  /// Reads --baseline and --line-filter. False, with a sentence in `error`, when one cannot be used.
  bool open(std::string &error);

  /// Runs git for --changed-since, in the repository of `directory` and in those of `files`.
  bool findChanges(const std::string &directory, const std::set<Name> &files, std::string &error);

  /// Marks the findings that are in the baseline, writes the new baseline, and removes findings that touch
  /// none of the requested lines; the others are shown in a file that
  /// has such lines. `looksAt`: see Baseline. When the run has failures, no baseline is written
  /// unless the options insist. False when the baseline could not be written.
  bool apply(std::vector<Diagnostic> &diagnostics, ReportRun &run, SourceCache &sources,
             const LooksAt &looksAt);

  /// What was done, one line each.
  const std::vector<std::string> &remarks() const { return told; }

private:
  bool writesToOutput() const { return options.writeBaseline == "-"; }
  bool write(std::vector<Diagnostic> &diagnostics, const ReportRun &run, const LooksAt &looksAt);

  const Options &options;
  std::optional<Baseline> baseline, replaced; ///< what is compared with; what is replaced
  std::optional<LineFilter> lines, changes;
  std::vector<std::string> told;
};

} // namespace devicetidy::driver
