//===- Gate.h - which findings count ----------------------------*- C++ -*-===//
//
// A project that has findings already can still refuse new ones: those a baseline does not know, or those
// that touch lines that were changed.
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

  /// Asks git for --changed-since, in the repository of `directory` and in those of `files`.
  bool findChanges(const std::string &directory, const std::set<Name> &files, std::string &error);

  /// Marks the findings that the baseline knows, writes the new one, and takes out those that touch no line
  /// that is asked for. `looksAt`: see Baseline. When the run has failures, no baseline is written unless the
  /// options insist. False when the baseline could not be written.
  bool apply(std::vector<Diagnostic> &diagnostics, ReportRun &run, const LooksAt &looksAt);

  /// What was done, in a line for each of it.
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
