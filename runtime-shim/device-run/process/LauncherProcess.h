//===- LauncherProcess.h - the process that started the ranks ---*- C++ -*-===//
//
// Finds the launcher that is common to all ranks of this machine. Its id is a part of what the ranks
// agree on without talking to each other.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <sys/types.h>

namespace devicerun {

/// The process that started the ranks of this machine, the same one for all of them: our nearest ancestor
/// that is no rank itself. Between it and us may be a wrapper script per rank.
pid_t launcherProcess();

} // namespace devicerun
