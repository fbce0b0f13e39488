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
/// and writes the picture. Of several functions of that name, as two programs have a `main`, the one in a
/// file of `asked` is meant. A sentence when there is no such function or several, else empty. `isWritten`
/// becomes false, with a complaint, when the file cannot be written.
std::string drawGraph(std::vector<Unit> units, const std::set<Name> &asked, const FileSettings &settings,
                      const Options &options, bool &isWritten);

} // namespace devicetidy::driver
