//===- RankProcess.h - the process of one rank ------------------*- C++ -*-===//
//
// Starts a rank, reads its output and ends it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Signals.h"

#include <string>
#include <vector>

#include <sys/types.h>

namespace devicerun {

/// How a rank is started.
struct RankCommand {
  std::string file;                     ///< what is executed, found already
  std::vector<std::string> arguments;   ///< from argv[0] on
  std::vector<std::string> environment; ///< "NAME=value"
  /// Read standard output and error through pipes, with nothing to read on standard input. Without it the
  /// rank has the launcher's own descriptors and terminal.
  bool captured = true;
  /// A process group of its own, so that Ctrl-C reaches the launcher alone and the group can be ended.
  bool ownGroup = true;
  /// Leave standard input unchanged although output is captured.
  bool keepInput = false;
};

/// A running rank. When the launcher dies, the kernel kills it.
struct RankProcess {
  pid_t pid = -1;
  int out = -1; ///< non-blocking read ends, or -1
  int err = -1;
};

/// Starts a rank. Throws RunError with ExitNotFound or ExitNotExecutable when the program cannot be executed,
/// with ExitLauncher when the system has no room for it.
RankProcess startRank(const RankCommand &command, const SignalBlock &signals);

} // namespace devicerun
