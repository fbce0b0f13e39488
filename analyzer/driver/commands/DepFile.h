//===- DepFile.h - the dependencies of a facts file, for Make ---*- C++ -*-===//
//
// Writes the file of --depfile: Make rules that say which source files a facts file depends on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <string>
#include <vector>

namespace devicetidy::driver {

/// Writes Make rules to `file`, as compilers do with -MD -MP: `target` depends on every file the units read,
/// and each of those has an empty rule, so that a deleted file makes the target out of date and is not an
/// error.
///
/// A unit with errors adds a file that does not exist: the header that it needs may not exist yet, so every
/// build reads it again. When the errors are gone the file is created, because CMake's Makefiles never
/// forget a dependency. Returns an error message, or nothing.
std::string writeDependencyRules(const std::string &file, const std::string &target,
                                 const std::vector<Unit> &units);

} // namespace devicetidy::driver
