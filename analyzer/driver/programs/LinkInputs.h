//===- LinkInputs.h - facts files, read to be linked ------------*- C++ -*-===//
//
// Reads the facts files of --link and checks that they belong together.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/FactsFile.h"

#include <set>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// The contents of all facts files of one --link.
struct LinkInputs {
  std::vector<Unit> units;          ///< each once, even if several files have it
  std::vector<std::string> roots;   ///< of the project
  std::set<Name> changedFiles;      ///< project files that are not any more what was read
  std::vector<std::string> remarks; ///< what the user should know
};

/// Reads the facts in `files`, at most `jobs` at a time. False, with a sentence in `error`, when one cannot
/// be used, or when they are some shards of a program and not all of them.
bool readLinkInputs(const std::vector<std::string> &files, unsigned jobs, LinkInputs &result,
                    std::string &error);

} // namespace devicetidy::driver
