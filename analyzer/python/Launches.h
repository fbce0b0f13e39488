//===- Launches.h - commands that start programs once for each GPU -*- C++ -*-===//
//
// They stand in other files of the project (launches.py), so they are no part of what is kept of a Python
// file: its main calls a function that is there when such a command is.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <optional>

namespace devicetidy::python {

/// The function that the main of a file calls first.
Name launchOf(const std::string &path);

/// A unit with those functions for the programs among `units`; nothing where no command starts one.
/// `interpreter` is the file of one. Only programs that load models are looked for.
std::optional<Unit> lowerLaunches(const std::string &interpreter, const std::vector<Unit> &units);

} // namespace devicetidy::python
