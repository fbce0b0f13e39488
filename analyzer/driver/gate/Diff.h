//===- Diff.h - the lines of a unified diff ---------------------*- C++ -*-===//
//
// Reads the output of git diff into a line filter.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/LineFilter.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace devicetidy::driver {

/// Adds what the unified diff `diff` (without context) changes below `root`. Where lines were removed, the
/// lines around the gap are added.
void addDiff(llvm::StringRef diff, const std::string &root, LineFilter &filter);

} // namespace devicetidy::driver
