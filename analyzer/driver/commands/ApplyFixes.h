//===- ApplyFixes.h - writes fixes to source files --------------*- C++ -*-===//
//
// Applies the changes of --fix to the files of the user.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/SelectFixes.h"
#include "analyzer/report/source/Source.h"

#include <string>
#include <vector>

namespace devicetidy::driver {

struct AppliedFixes {
  std::size_t files = 0;
  std::vector<std::string> errors; ///< a sentence for every file that could not be changed
};

/// Writes the changes to their files. Each file is replaced as a whole or not at all: the new text goes to a
/// temporary file next to it, which gets its permissions and then its name. A file that is no longer as
/// `sources` read it is not changed.
AppliedFixes applyFixes(const std::vector<Replacement> &changes, SourceCache &sources);

} // namespace devicetidy::driver
