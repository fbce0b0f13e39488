//===- DumpConfig.h - a configuration, shown to the user --------*- C++ -*-===//
#pragma once

#include "analyzer/config/Settings.h"

#include <string>

namespace devicetidy::config {

/// What holds, as YAML that a configuration file may consist of.
std::string dumpConfig(const Settings &settings);

/// A line for each check and each value that is set: what it is, and who says so.
std::string explainConfig(const Settings &settings);

} // namespace devicetidy::config
