//===- SolvePrograms.h - from units to findings -----------------*- C++ -*-===//
//
// Runs the solver and the checks on each program, in parallel.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/commands/Reporting.h"
#include "analyzer/driver/commands/Statistics.h"
#include "analyzer/driver/options/FileSettings.h"
#include "analyzer/facts/Program.h"

#include <vector>

namespace devicetidy::driver {

/// Groups `units` into programs, links and solves each by their settings and runs the checks of `outcome`
/// on it, with a line of progress on a terminal. Findings, and programs the analyzer failed on, are added
/// to `outcome`. The order of the units does not matter.
void solvePrograms(std::vector<Unit> units, const FileSettings &settings, bool showProgress, Outcome &outcome,
                   Statistics &statistics);

} // namespace devicetidy::driver
