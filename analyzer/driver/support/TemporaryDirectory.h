//===- TemporaryDirectory.h - a directory for this process ------*- C++ -*-===//
//
// A directory that is removed when the process ends.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace devicetidy::driver {

/// Makes an empty directory; nothing when that fails. It is removed as well when a signal ends the process
/// (Ctrl-C, a time limit), which no destructor sees. There is one at a time.
std::string makeTemporaryDirectory();

void removeTemporaryDirectory(const std::string &directory);

} // namespace devicetidy::driver
