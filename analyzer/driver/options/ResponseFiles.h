//===- ResponseFiles.h - arguments from files -------------------*- C++ -*-===//
//
// Expands arguments of the form @FILE.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace devicetidy::driver {

/// Replaces each "@FILE" by the arguments in FILE, which are quoted as in a shell and may name further
/// files. The arguments after "--" are for the compiler and stay unchanged. False, with a sentence in
/// `error`, when a file cannot be read.
bool expandResponseFiles(const std::vector<std::string> &written, std::vector<std::string> &arguments,
                         std::string &error);

} // namespace devicetidy::driver
