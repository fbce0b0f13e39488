//===- TemporaryDirectory.h - a place for this process alone ----*- C++ -*-===//
#pragma once

#include <string>

namespace devicetidy::driver {

/// Makes an empty directory; nothing when that fails. It is removed as well when a signal ends the process
/// (Ctrl-C, a time limit), which no destructor sees. There is one at a time.
std::string makeTemporaryDirectory();

void removeTemporaryDirectory(const std::string &directory);

} // namespace devicetidy::driver
