//===- Summary.h - a run in a few lines -------------------------*- C++ -*-===//
//
// The lines on standard error after the report: how many findings there are, and what could not be
// parsed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"

#include <cstddef>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// A translation unit that could not be parsed, or only in part.
struct Failure {
  std::string file;
  std::string reason; ///< "file:line:col: message"
  bool isTotal;       ///< nothing of it could be analysed
};

/// Which translation units failed, and why, and what to do where LibTorch was not found; empty when none did.
std::string describeFailures(const std::vector<Failure> &failures, std::size_t unitCount);
/// "2 findings in 1 file; 5 translation units analysed, 1 of them with errors".
std::string describeResult(const std::vector<Diagnostic> &diagnostics, std::size_t unitCount,
                           std::size_t failureCount);

} // namespace devicetidy::driver
