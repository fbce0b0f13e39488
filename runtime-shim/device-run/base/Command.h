//===- Command.h - runs another program for its output ----------*- C++ -*-===//
//
// Runs helper programs such as addr2line and nvidia-smi and returns their output.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace devicerun {

/// Standard output of a program that is run to its end with `input` on its standard input; its standard error
/// is discarded. Empty when it cannot be run. LD_PRELOAD is not passed on. It must not be called while
/// ranks run: it waits for its own child only and does not watch the ranks meanwhile.
std::string outputOf(const std::vector<std::string> &command, const std::string &input = "");

} // namespace devicerun
