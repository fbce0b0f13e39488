//===- Analysis.h - from units to findings and placements -------*- C++ -*-===//
#pragma once

#include "analyzer/driver/options/FileSettings.h"
#include "analyzer/lsp/Units.h"
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

/// Solves the programs that the roots of `units` are part of and asks the checks of `settings` about them, as
/// driver::solvePrograms does. Placements are told for `files`.
Analysis analyse(const Units &units, const driver::FileSettings &settings, const std::set<Name> &files,
                 const std::atomic<bool> &stop);

} // namespace devicetidy::lsp
