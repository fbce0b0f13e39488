//===- Baseline.h - findings that are known already -------------*- C++ -*-===//
//
// A baseline is the report of an earlier run, as JSON or SARIF, or the output of --write-baseline. Its
// findings are known; a run with the baseline reports the others.
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

/// A finding in a baseline.
struct BaselineEntry {
  std::string check, file, function, message, fingerprint;
  std::string cause; ///< file of the cause, if that is in another function; empty in older baselines
  Level level = Level::Definite; ///< if it is not recorded, the finding counts as always shown
  bool isMatched = false;
};

/// Would the run show a finding like this one, if it still existed?
using LooksAt = std::function<bool(const BaselineEntry &entry)>;

class Baseline {
public:
  /// Reads a report; the findings that were suppressed in it are ignored. False, with a sentence in
  /// `error`, when it is not a baseline.
  bool read(std::string_view text, std::string &error);

  /// Marks each diagnostic as new or known. It is known when its fingerprint is in the baseline, or when an
  /// unmatched entry says the same in the same file or in a function of the same name: then a line was
  /// reformatted, a function renamed, or a file moved. An entry is matched with a diagnostic that is not
  /// suppressed rather than with one that is. One that was written when findings with different causes were
  /// one finding stands for all of them.
  ///
  /// `looksAt` is called for entries without a match (their files are below the source root): an entry that
  /// the run did not check is not fixed.
  BaselineSummary compare(std::vector<Diagnostic> &diagnostics, const ReportRun &run, const LooksAt &looksAt);

  /// The text of a baseline with the diagnostics that are not suppressed, and with the entries of this one
  /// that the run did not check. Equal findings give equal text.
  std::string updated(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                      const LooksAt &looksAt) const;

private:
  using Entry = BaselineEntry;
  class Matching;
  static Entry entryOf(const Diagnostic &diagnostic, const ReportRun &run);

  std::vector<Entry> entries;
};

} // namespace devicetidy
