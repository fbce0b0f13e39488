//===- Documentation.h - where the pages of the checks are ------*- C++ -*-===//
//
// Finds the pages that reports link to.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace devicetidy::driver {

/// Where docs/ is for readers of a report: the address that the build was configured with, or else a
/// folder (absolute), the one that is installed with the tool or that of the sources it was built from. Empty
/// without.
std::string documentation();

} // namespace devicetidy::driver
