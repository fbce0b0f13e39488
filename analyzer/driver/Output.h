//===- Output.h - what the user sees beside the findings --------*- C++ -*-===//
#pragma once

#include "analyzer/driver/Options.h"
#include "analyzer/report/Diagnostic.h"

#include <string>
#include <vector>

namespace devicetidy::driver {

/// A translation unit that could not be parsed, or not whole.
struct Failure {
  std::string file;
  std::string reason; ///< "file:line:col: message"
  bool isTotal;       ///< nothing of it could be analysed
};

/// An error on standard error.
void complain(const std::string &sentence);
/// A remark on standard error, unless the user asked for quiet.
void remark(const Options &options, const std::string &sentence);

bool showsProgress(const Options &options);
bool usesColour(const Options &options);

/// Has everything that was written to standard output arrive. Complains and returns false when that fails.
bool flushOutput();

/// Writes `text` to `file`, or to standard output for "-". Complains and returns false when that fails.
bool writeOutput(const std::string &file, const std::string &text);

/// Which translation units failed, and why; empty when none did.
std::string describeFailures(const std::vector<Failure> &failures, std::size_t unitCount);
/// "2 findings in 1 file; 5 translation units analysed, 1 of them with errors".
std::string describeResult(const std::vector<Diagnostic> &diagnostics, std::size_t unitCount,
                           std::size_t failureCount);

} // namespace devicetidy::driver
