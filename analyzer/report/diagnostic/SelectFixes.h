//===- SelectFixes.h - fixes that can be applied together -------*- C++ -*-===//
//
// Selects fixes that do not overlap.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"

#include <string>
#include <vector>

namespace devicetidy {

struct FixSelection {
  std::vector<bool> isChosen;                  ///< for each diagnostic: its fix is applied
  std::vector<Replacement> changes;            ///< of the chosen fixes, each once, by file and offset
  std::vector<const Diagnostic *> conflicting; ///< their fix overlaps another one
};

/// Chooses among the fixes of diagnostics that are not suppressed. Of two that overlap the first stays; two
/// that put different text in the same place contradict each other, and neither is made.
FixSelection selectFixes(const std::vector<Diagnostic> &diagnostics);

/// `source` with `changes`, which are sorted by offset and do not overlap.
std::string withChanges(std::string_view source, const std::vector<Replacement> &changes);

} // namespace devicetidy
