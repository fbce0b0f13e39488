//===- ConfigCommands.h - commands that analyse nothing ---------*- C++ -*-===//
//
// The options that only print something: --list-checks, --list-models, --explain, and those that show or
// check the configuration.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/commands/Run.h"
#include "analyzer/driver/options/Options.h"

namespace devicetidy::driver {

/// --list-checks, --list-models, --explain, --dump-config, --verify-config or --explain-config, if the
/// options ask for one.
std::optional<ExitCode> runInformation(const Options &options);

} // namespace devicetidy::driver
