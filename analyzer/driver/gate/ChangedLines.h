//===- ChangedLines.h - the changes since a commit --------------*- C++ -*-===//
//
// Finds the lines for --changed-since with git, in the repository of the sources and in other
// repositories below it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Name.h"
#include "analyzer/report/diagnostic/LineFilter.h"

#include <set>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// Adds the lines that differ from the last common commit of `ref` and HEAD: committed since, staged, or only
/// in the work tree; for files that git does not know all lines. Where lines were removed, the lines around
/// the gap are added.
///
/// This uses the repository of `directory`, and the repositories of `files`: a submodule is compared with the
/// commit that the enclosing repository had, another repository with `ref` there. `remarks` gets a sentence
/// for each of these that cannot be compared. False, with a sentence in `error`, when the first one cannot.
bool addChangedLines(const std::string &directory, const std::string &ref, const std::set<Name> &files,
                     LineFilter &filter, std::vector<std::string> &remarks, std::string &error);

} // namespace devicetidy::driver
