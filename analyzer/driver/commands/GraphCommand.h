//===- GraphCommand.h - the picture of one function -------------*- C++ -*-===//
//
// The command --graph.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/options/FileSettings.h"
#include "analyzer/driver/options/Options.h"
#include "analyzer/facts/Program.h"

#include <set>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// Draws where the tensors of the function `options.graph` live, over all programs of `units` that have it,
/// and writes the picture. Of several functions of that name, such as the `main` of two programs, the one
/// in a file of `asked` is drawn. Returns an error message when there is no such function or several, else
/// empty. Paths in the picture are relative to `root`. `isWritten` becomes false, with an error message, when
/// the file cannot be written.
std::string drawGraph(std::vector<Unit> units, const std::set<Name> &asked, const FileSettings &settings,
                      const Options &options, const std::string &root, bool &isWritten);

} // namespace devicetidy::driver
