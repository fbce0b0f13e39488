//===- Git.h - what git says about a work tree ------------------*- C++ -*-===//
#pragma once

#include "analyzer/report/LineFilter.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace devicetidy::driver {

/// Adds the lines of the repository around `directory` that are not as they were in the last commit that
/// `ref` and HEAD share: committed since, staged, or only in the work tree; of files that git does not know
/// all lines. Where lines are gone, the ones around the gap count. False, with a sentence in `error`, when
/// git cannot say it.
bool addChangedLines(const std::string &directory, const std::string &ref, LineFilter &filter,
                     std::string &error);

/// Adds what the unified diff `diff` (without context) changes below `root`.
void addDiff(llvm::StringRef diff, const std::string &root, LineFilter &filter);

} // namespace devicetidy::driver
