//===- OptionRules.h - which options can be combined ------------*- C++ -*-===//
//
// Finds combinations of options that contradict each other or have no effect.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/options/Options.h"

#include <string>

namespace devicetidy::driver {

/// An error message about options that cannot be combined, or empty.
std::string conflictingOptions(const Options &options);

} // namespace devicetidy::driver
