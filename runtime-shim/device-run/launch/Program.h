//===- Program.h - finds the program to run ---------------------*- C++ -*-===//
//
// Looks up the program in PATH and explains why it cannot be run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace devicerun {

/// The file for `name`: itself if it has a slash, else the first executable of that name in
/// `path` (PATH's form). Throws RunError(ExitNotFound) when there is none and RunError(ExitNotExecutable)
/// when it is a directory or may not be executed; the messages say what to do.
std::string findProgram(const std::string &name, const std::string &path);

} // namespace devicerun
