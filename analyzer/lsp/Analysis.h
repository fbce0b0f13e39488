//===- Analysis.h - from units to findings and placements -------*- C++ -*-===//
//
// Solves the programs of the open files and runs the checks on them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/options/FileSettings.h"
#include "analyzer/lsp/ProjectUnits.h"
#include "analyzer/report/finding/Finding.h"

#include <atomic>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::lsp {

struct Analysis {
  std::vector<Finding> findings; ///< sorted, equal ones merged
  std::vector<PlacedExpression> placed;
  bool isStopped = false;
};

/// Solves the programs that the roots of `units` are part of and runs the checks of `settings` on them, as
/// driver::solvePrograms does. Placements are recorded for `files`.
Analysis analyse(const ProjectUnits &units, const driver::FileSettings &settings, const std::set<Name> &files,
                 const std::atomic<bool> &stop);

} // namespace devicetidy::lsp
