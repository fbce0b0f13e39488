//===- Run.h - the whole command, from options to exit status ---*- C++ -*-===//
#pragma once

#include <string>
#include <vector>

namespace devicetidy::driver {

/// What the command returns. A later one outranks an earlier one.
enum class ExitCode : int { Clean = 0, Findings = 1, Usage = 2, ParseFailed = 3 };

/// Runs device-tidy with the arguments after argv[0].
ExitCode runCommand(const std::vector<std::string> &arguments);

} // namespace devicetidy::driver
