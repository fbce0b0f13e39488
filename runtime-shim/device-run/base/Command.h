//===- Command.h - asking another program -----------------------*- C++ -*-===//
#pragma once

#include <string>
#include <vector>

namespace devicerun {

/// Standard output of a program that is run to its end with `input` on its standard input; its standard error
/// is thrown away. Empty when it cannot be run. LD_PRELOAD is not passed on. It must not be called while
/// ranks run: it waits for its own child alone, but without an eye on anybody else.
std::string outputOf(const std::vector<std::string> &command, const std::string &input = "");

} // namespace devicerun
