//===- Process.h - a program that answers ----------------------*- C++ -*-===//
//
// Runs a program with pipes, so that nothing is left behind when either side is ended.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace devicetidy::python {

/// What a program wrote to its standard output and error, and how it ended.
struct Answer {
  std::string output, problems;
  int status = -1;        ///< exit code; 128 and more: the signal that ended it
  bool isStopped = false; ///< because it was told to
};

/// Runs `program` with `arguments` (without its name) and `input` on its standard input; ends it as soon as
/// `stop` is set. False with `error` when it cannot be started.
bool run(const std::string &program, const std::vector<std::string> &arguments, const std::string &input,
         const std::atomic<bool> *stop, Answer &answer, std::string &error);

} // namespace devicetidy::python
