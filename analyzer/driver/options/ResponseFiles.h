//===- ResponseFiles.h - arguments from files -------------------*- C++ -*-===//
//
// Expands arguments of the form @FILE.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace devicetidy::driver {

/// Replaces each "@FILE" by the arguments in FILE, which are quoted as a shell would have them and may name
/// further files. What follows a "--" is the compiler's and stays. False, with a sentence in `error`, when a
/// file cannot be read.
bool expandResponseFiles(const std::vector<std::string> &written, std::vector<std::string> &arguments,
                         std::string &error);

} // namespace devicetidy::driver
