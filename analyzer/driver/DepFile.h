//===- DepFile.h - what a facts file was made from, for Make ----*- C++ -*-===//
#pragma once

#include "analyzer/facts/Program.h"

#include <string>
#include <vector>

namespace devicetidy::driver {

/// Make rules, as compilers write them with -MD -MP: `target` depends on every file the units read, and each of
/// those has an empty rule, so that one that is gone makes the target old and stops nothing. A unit with
/// errors adds a file that never exists: what would mend the unit may not exist yet, so it is read again
/// each time.
std::string dependencyRules(const std::string &target, const std::vector<Unit> &units);

} // namespace devicetidy::driver
