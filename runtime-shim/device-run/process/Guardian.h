//===- Guardian.h - ends all processes of a job -----------------*- C++ -*-===//
//
// A parent process that ends everything below it, even if the launcher itself is killed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Signals.h"

#include <functional>
#include <string>

namespace devicerun {

/// Runs `job` in a child process and waits for it: the process that the user started only guards it.
///
/// - Signals that end the job are passed on, so that the job ends the ranks in order.
/// - If the job is killed, the guardian inherits what it leaves and ends it.
/// - If the guardian is killed, the job gets SIGTERM (PR_SET_PDEATHSIG) and ends the ranks.
///
/// Either way `scratch` is removed with all it holds. Returns the exit code of `job`, or 128 plus the number
/// of the signal that ended it.
int runGuarded(const SignalBlock &signals, const std::string &scratch, const std::function<int()> &job);

} // namespace devicerun
