//===- Run.h - the whole command, from options to exit status ---*- C++ -*-===//
//
// The entry of the command line tool. It reads the options and runs the command that they ask for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/options/Options.h"

#include <string>
#include <vector>

namespace devicetidy::driver {

/// The exit codes. When several apply, the last of them is returned.
enum class ExitCode : int { Clean = 0, Findings = 1, Usage = 2, ParseFailed = 3 };

/// Serves an editor until it shuts the server down (analyzer/lsp).
using Server = ExitCode (*)(const Options &options);

/// Runs device-tidy with the arguments after argv[0]. `serve` runs --lsp; null in a build without it.
ExitCode runCommand(const std::vector<std::string> &arguments, Server serve);

} // namespace devicetidy::driver
