//===- Descendants.h - all processes below this one -------------*- C++ -*-===//
//
// Finds all descendants of this process, also those that changed their session or lost their parent.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace devicerun {

/// Makes this process inherit the orphans among its descendants, so that none of them gets out of sight by
/// losing its parent, starting a session or changing its process group.
void becomeSubreaper();

/// Parent of the process whose /proc/PID/stat `statFile` is, or 0 when the process is gone or a zombie. It
/// may end at any time, so that a file that was opened fails to be read.
pid_t livingParent(const std::string &statFile);

/// The living processes below `ancestor`, from /proc; zombies are left out.
std::vector<pid_t> descendantsOf(pid_t ancestor);

/// Ends every process below this one with SIGKILL and collects them, until there is none or `milliseconds`
/// are over. Returns whether none is left.
bool killDescendants(int milliseconds);

} // namespace devicerun
