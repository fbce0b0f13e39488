//===- ReadUnits.h - translation units, read in parallel --------*- C++ -*-===//
#pragma once

#include "analyzer/driver/ProjectFiles.h"
#include "analyzer/facts/Program.h"

#include <functional>
#include <vector>

namespace devicetidy::driver {

struct ReadOptions {
  unsigned jobs = 0;         ///< 0: as many as processors and memory allow
  bool showProgress = false; ///< on standard error, which is a terminal
};

/// Lowers every command to facts. The result has the order of `commands` whatever the number of jobs; a unit
/// the frontend crashed on comes back with a fatal error.
std::vector<Unit> readUnits(const std::vector<CompileCommand> &commands, const ProjectFiles &project,
                            const ReadOptions &options);

/// Runs `work` with a stack that deeply nested code does not exhaust. False when it crashed all the same.
bool runGuarded(const std::function<void()> &work);

} // namespace devicetidy::driver
