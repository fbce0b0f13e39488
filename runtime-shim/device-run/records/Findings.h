//===- Findings.h - findings of a report and of a run -----------*- C++ -*-===//
//
// Reads the findings of a SARIF report and compares them with the operations and errors of a run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "records/Frame.h"
#include "records/Records.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace devicerun {

/// Lines of a source file.
struct Region {
  std::string file; ///< absolute, or as written when the report does not say what it is relative to
  int firstLine = 0;
  int lastLine = 0;

  bool holds(const Frame &frame) const;
};

/// Do the two name one file? A relative path may be the end of the other.
bool sameFile(const std::string &ofFinding, const std::string &ofFrame);

enum class Verdict {
  NotReached,
  Reached,
  Confirmed,
  NotJudged,    ///< a run like this one cannot tell
  OtherProgram, ///< the program has no code from that file
};

/// One result of the report, and what the run said about it.
struct Finding {
  std::string rule;
  std::string message;
  Region place;
  std::vector<Region> related; ///< relatedLocations and the steps of codeFlows
  Verdict verdict = Verdict::NotReached;
  std::string evidence; ///< the error that confirmed it, one line
  std::string note;     ///< why it is not more than that, one line
  int rank = -1;        ///< where that happened

  std::size_t run = 0; ///< its index in the report
  std::size_t result = 0;
};

/// A SARIF 2.1.0 report (OASIS Standard, https://docs.oasis-open.org/sarif/sarif/v2.1.0/).
class FindingsReport {
public:
  /// Throws RunError(ExitUsage) when the file cannot be read or is not a SARIF 2.1.0 log.
  explicit FindingsReport(const std::string &path);

  std::vector<Finding> &findings() { return list; }
  const std::vector<Finding> &findings() const { return list; }

  /// Writes the report with `properties.deviceRun` on every result that has a place:
  /// {"status": "confirmed" | "reached" | "notReached" | "notJudged" | "otherProgram", "error": TEXT,
  /// "rank": N, "note": TEXT}. Throws RunError(ExitLauncher).
  void write(const std::string &path);

private:
  nlohmann::ordered_json log;
  std::vector<Finding> list;
};

/// What the ranks have written down.
struct RunRecords {
  std::vector<ErrorRecord> errors;
  std::vector<UncaughtException> uncaught;
  std::vector<ReachedFrame> reached;
  bool isIsolated = false; ///< host code that touches memory of a device faults
  /// The files that the program has code from; nothing when that is not known.
  std::optional<std::vector<std::string>> sources;
};

/// Compares findings with what happened, as CONTRACT.md defines it.
void judgeFindings(std::vector<Finding> &findings, const RunRecords &run, FrameResolver &resolver);

/// A table with a line for each finding of the program, and a line that counts all.
std::string describeFindings(const std::vector<Finding> &findings);

} // namespace devicerun
