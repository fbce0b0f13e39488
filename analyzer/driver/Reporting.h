//===- Reporting.h - from findings to what the user gets --------*- C++ -*-===//
#pragma once

#include "analyzer/driver/Options.h"
#include "analyzer/driver/Output.h"
#include "analyzer/driver/ProjectFiles.h"
#include "analyzer/report/Finding.h"

#include <set>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// What the analysis leaves to be reported.
struct Outcome {
  std::vector<Finding> findings; ///< those the user wants to see, sorted
  std::vector<Failure> failures;
  std::set<std::string> checks, errors; ///< names of the checks that ran; of those that make errors
  std::set<Name> files;                 ///< project files that the translation units read
  std::set<Name> changedFiles;          ///< those that are not any more what was read
  std::size_t unitCount = 0;
};

/// What became of it.
struct ReportResult {
  std::size_t shown = 0;             ///< findings that are not suppressed
  bool isWritten = true;             ///< the report and all changes of files are where they were asked for
  std::string summary, suppressions; ///< a line each for the terminal; the second may be empty
};

/// Describes, suppresses, fixes and writes the findings in the format the options ask for. Changed files are
/// not quoted, and when there are any nothing is fixed.
ReportResult writeReport(const Outcome &outcome, const Options &options, const ProjectView &project);

} // namespace devicetidy::driver
