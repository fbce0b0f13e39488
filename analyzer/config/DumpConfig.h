//===- DumpConfig.h - prints a configuration --------------------*- C++ -*-===//
//
// The output of --dump-config and --explain-config.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/config/Settings.h"

#include <string>

namespace devicetidy::config {

/// The settings as YAML, in the form of a configuration file.
std::string dumpConfig(const Settings &settings);

/// A line for each check and each value that is set: the value, and where it comes from.
std::string explainConfig(const Settings &settings);

} // namespace devicetidy::config
