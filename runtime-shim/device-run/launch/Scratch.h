//===- Scratch.h - the folder of one launcher -------------------*- C++ -*-===//
//
// The folder in which the ranks of one launcher leave their records, gone when it ends.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Environment.h"

#include <string>

namespace devicerun {

/// Makes a folder below TMPDIR, or /tmp, and removes those that killed launchers left there: this process and
/// its forks hold a lock in theirs. \returns its absolute path. \throws RunError when it cannot be made.
std::string makeScratch(const Environment &environment);

} // namespace devicerun
