//===- Descendants.h - every process below this one -------------*- C++ -*-===//
#pragma once

#include <vector>

#include <sys/types.h>

namespace devicerun {

/// Makes this process inherit the orphans among its descendants, so that none of them gets out of sight by
/// losing its parent, starting a session or changing its process group.
void becomeSubreaper();

/// The living processes below `ancestor`, from /proc; zombies are left out.
std::vector<pid_t> descendantsOf(pid_t ancestor);

/// Ends every process below this one with SIGKILL and collects them, until there is none or `milliseconds`
/// are over. Returns whether none is left.
bool killDescendants(int milliseconds);

} // namespace devicerun
