//===- WholeFile.h - files that are there whole or not at all ---*- C++ -*-===//
#pragma once

#include <string>

namespace devicetidy::driver {

/// Writes `text` to a temporary file beside `file` and renames it, so that a build that is interrupted keeps
/// what was there before. What is no regular file (a terminal, a pipe) is written directly. The sentence that
/// says why it failed, or empty.
std::string writeWholeFile(const std::string &file, const std::string &text);

} // namespace devicetidy::driver
