//===- WholeFile.h - writes complete files ----------------------*- C++ -*-===//
//
// Writes files so that readers never see a part of one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace devicetidy::driver {

/// Writes `text` to a temporary file next to `file` and renames it, so that an interrupted build keeps
/// what was there before. Other files (a terminal, a pipe) are written directly. Returns an error message, or
/// empty.
std::string writeWholeFile(const std::string &file, const std::string &text);

} // namespace devicetidy::driver
