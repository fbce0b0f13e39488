//===- Baseline.h - findings that are known already -------------*- C++ -*-===//
//
// A baseline is the report of an earlier run, as JSON or SARIF, or what --write-baseline made of one. What is
// in it is known; a run that is given it reports the rest.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"
#include "analyzer/report/formats/ReportRun.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace devicetidy {

/// A finding as a baseline has it.
struct BaselineEntry {
  std::string check, file, function, message, fingerprint;
  Level level = Level::Definite; ///< one that is not written down is taken to be shown always
  bool isMatched = false;
};

/// Would the run show a finding like this one, if it were there still?
using LooksAt = std::function<bool(const BaselineEntry &entry)>;

class Baseline {
public:
  /// Reads a report; the findings that were suppressed in it are not taken. False, with a sentence in
  /// `error`, when it is not a baseline.
  bool read(std::string_view text, std::string &error);

  /// Says of each diagnostic whether it is new. It is known when its fingerprint is in the baseline, or else
  /// when a finding that is left over there says the same in the same file or in a function of the same name:
  /// then a line was reformatted, a function renamed, or a file moved. An entry stands for a diagnostic that
  /// is not suppressed rather than for one that is.
  ///
  /// `looksAt` is asked about entries that nothing matches (their files are below the source root): what the
  /// run did not look at is not fixed.
  BaselineSummary compare(std::vector<Diagnostic> &diagnostics, const ReportRun &run, const LooksAt &looksAt);

  /// The text of a baseline with the diagnostics that are not suppressed, and with the entries of this one
  /// that the run did not look at. Equal findings make equal text.
  std::string updated(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                      const LooksAt &looksAt) const;

private:
  using Entry = BaselineEntry;
  class Matching;
  static Entry entryOf(const Diagnostic &diagnostic, const ReportRun &run);

  std::vector<Entry> entries;
};

} // namespace devicetidy
