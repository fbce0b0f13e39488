//===- RunError.h - errors and exit codes of device-run ---------*- C++ -*-===//
//
// The exception that ends device-run with a message and an exit code.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <stdexcept>
#include <string>

namespace devicerun {

/// Exit codes of device-run itself; any other code is that of the rank that failed first.
enum ExitCode : int {
  ExitUsage = 2,           ///< wrong command line, or an input file of it cannot be used
  ExitTimeout = 124,       ///< --timeout
  ExitLauncher = 125,      ///< the launcher itself could not do its work
  ExitNotExecutable = 126, ///< as in shells
  ExitNotFound = 127,      ///< as in shells
  ExitSignalBase = 128     ///< plus the number of the signal
};

/// Ends device-run with a message for the user: what is wrong and what to do about it.
class RunError : public std::runtime_error {
public:
  RunError(int exitCode, const std::string &message) : std::runtime_error(message), exitCode(exitCode) {}
  const int exitCode;
};

} // namespace devicerun
