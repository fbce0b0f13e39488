//===- OptionRules.h - which options go together ----------------*- C++ -*-===//
#pragma once

#include "analyzer/driver/options/Options.h"

#include <string>

namespace devicetidy::driver {

/// A sentence about options that make no sense together, or empty.
std::string conflictingOptions(const Options &options);

} // namespace devicetidy::driver
