//===- DistributedOptions.h - options of device-map-distributed -*- C++ -*-===//
//
// Turns the options of device-map-distributed into the names that the solver looks for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/solution/SolveOptions.h"

#include <functional>
#include <string>

namespace devicetidy::config {

/// The names that the options of device-map-distributed list; `option` gives the value of one.
DistributedNames distributedNames(const std::function<std::string(const char *option)> &option);

} // namespace devicetidy::config
