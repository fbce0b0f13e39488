//===- Reporting.h - from findings to reports -------------------*- C++ -*-===//
//
// The last part of a run: suppressions, baselines, fixes, the report and the exit status.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/commands/Summary.h"
#include "analyzer/driver/gate/Gate.h"
#include "analyzer/driver/gate/UnusedSuppressions.h"
#include "analyzer/driver/input/ProjectFiles.h"
#include "analyzer/driver/options/Options.h"
#include "analyzer/report/finding/Finding.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// The results of the analysis that are reported.
struct Outcome {
  std::vector<Finding> findings; ///< those that are enabled, sorted
  std::vector<Failure> failures;
  std::set<std::string> checks; ///< names of those that ran
  /// Is the finding reported as an error?
  std::function<bool(const Finding &)> isError = [](const Finding &) { return false; };
  std::vector<FindingPlace> places; ///< of all findings in `files`, for --report-unused-suppressions
  std::function<bool(Name file, const std::string &check)> isEnabled; ///< for the places
  std::set<Name> files;        ///< project files that the translation units read
  std::set<Name> contextFiles; ///< those that are read only by sources analysed for what was asked for
  std::set<Name> askedFor;     ///< FILES, when there are any: a finding is shown where it enters one of them
  std::set<Name> changedFiles; ///< those that have changed since they were read
  std::set<Name> brokenFiles;  ///< read by translation units that have errors
  /// Is a finding of this check and level, in this file, shown?
  std::function<bool(Name file, const std::string &check, Level level)> isShown;
  std::size_t unitCount = 0;
};

/// What was reported.
struct ReportResult {
  std::size_t shown = 0;            ///< findings that are not suppressed
  bool isWritten = true;            ///< the report and all changes of files were written
  std::size_t fixed = 0;            ///< findings whose fixes were applied
  std::vector<std::string> left;    ///< a line for each finding: where it is, and what to do about it
  std::vector<std::string> summary; ///< lines for the terminal
};

/// The folder that file names in reports are relative to: the top of the repository, or else of the project.
std::string sourceRootOf(const Options &options, const ProjectView &project);

/// Describes, suppresses, fixes and writes the findings in the requested format. Changed files are not
/// quoted, and when there are any nothing is fixed. `gate` decides which findings count. In a further round
/// of fixes nothing is written but the fixes.
ReportResult writeReport(const Outcome &outcome, const Options &options, const ProjectView &project,
                         Gate &gate);

} // namespace devicetidy::driver
