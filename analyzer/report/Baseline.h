//===- Baseline.h - findings that are known already -------------*- C++ -*-===//
//
// A baseline is the report of an earlier run, as JSON or SARIF, or what --write-baseline made of one. What is
// in it is known; a run that is given it reports the rest.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/Diagnostic.h"
#include "analyzer/report/ReportRun.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace devicetidy {

class Baseline {
public:
  /// Reads a report; the findings that were suppressed in it are not taken. False, with a sentence in
  /// `error`, when it is none.
  bool read(std::string_view text, std::string &error);

  /// Says of each diagnostic whether it is new. It is known when its fingerprint is in the baseline, or else
  /// when a finding that is left over there says the same in the same file or in a function of the same name:
  /// then a line was reformatted, a function renamed, or a file moved. The summary counts those that are not
  /// suppressed.
  ///
  /// `tookPart` is asked about the files (below the source root) of entries that nothing matches: what is in
  /// a file that the run did not look at is not fixed.
  BaselineSummary compare(std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                          const std::function<bool(const std::string &file)> &tookPart);

  /// The text of a baseline with the diagnostics that are not suppressed, and with the entries of this one in
  /// files that the run did not look at. Equal findings make equal text.
  std::string updated(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                      const std::function<bool(const std::string &file)> &tookPart) const;

private:
  struct Entry {
    std::string check, file, function, message, fingerprint;
    bool isMatched = false;
  };
  static Entry entryOf(const Diagnostic &diagnostic, const ReportRun &run);

  std::vector<Entry> entries;
};

} // namespace devicetidy
