//===- ReportRun.h - the parts of a report besides findings -----*- C++ -*-===//
//
// What a report says about the run: units that failed, the baseline, the tool and its arguments.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"
#include "analyzer/report/finding/CheckInfo.h"
#include "analyzer/report/source/Source.h"

#include <optional>
#include <string>
#include <vector>

namespace devicetidy {

/// A translation unit that could not be parsed, or only in part.
struct UnitFailure {
  Location where; ///< of its first error; only the file when the place is unknown
  std::string text;
  bool isTotal = false; ///< nothing of it could be analysed
};

/// Findings of the run against those of a baseline.
struct BaselineSummary {
  std::size_t added = 0, unchanged = 0; ///< findings of the run that are not suppressed
  std::size_t suppressed = 0;           ///< known findings that a comment suppresses now
  std::size_t fixed = 0;                ///< entries of the baseline without a finding
  std::size_t notLookedAt = 0;          ///< entries that the run did not check
};

/// One run of the tool, for the reports that machines read.
struct ReportRun {
  std::string version;
  std::string
      sourceRoot; ///< absolute, without a slash at its end; paths below it are reported relative to it
  std::string documentation; ///< the address or the absolute path of docs/; empty when it is not installed
  std::vector<const CheckInfo *> checks;
  std::vector<UnitFailure> failures;
  std::size_t suppressed = 0; ///< findings that comments suppress
  std::optional<BaselineSummary> baseline;
  int exitCode = 0;
};

/// "error", "warning" or "note", for formats with these three levels. A definite finding is an error, a
/// latent one a note.
std::string_view levelWord(const Diagnostic &diagnostic);

/// "definite", "likely" or "latent".
std::string_view certainty(Level level);

/// " (suppressed)", " (in the baseline)", or nothing.
std::string_view inactiveMark(const Diagnostic &diagnostic);

/// "FILE:LINE:COLUMN: CHECK MESSAGE", with paths relative to `folder`.
std::string conciseReport(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                          const std::string &folder, SourceCache &sources);
/// SARIF 2.1.0, within what GitHub code scanning accepts.
std::string sarifReport(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                        SourceCache &sources);
/// One object per finding; docs/output.md describes it.
std::string jsonReport(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                       SourceCache &sources);
/// Workflow commands of GitHub Actions, which it shows beside the code of a pull request.
std::string gitHubReport(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                         SourceCache &sources);
/// What GitLab shows in merge requests as code quality: a list in the format of Code Climate.
std::string gitLabReport(const std::vector<Diagnostic> &diagnostics, const ReportRun &run);
/// One page for a browser, without external files. Shows the graphs of the diagnostics.
std::string htmlReport(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                       SourceCache &sources);
/// Findings and their fixes as clang-apply-replacements reads them; `isChosen` says, for each diagnostic,
/// whether its fix is written.
std::string exportedFixes(const std::vector<Diagnostic> &diagnostics, const std::vector<bool> &isChosen,
                          SourceCache &sources);

} // namespace devicetidy
