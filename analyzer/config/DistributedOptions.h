//===- DistributedOptions.h - names of device-map-distributed ---*- C++ -*-===//
#pragma once

#include "analyzer/solve/Solve.h"

#include <functional>
#include <string>

namespace devicetidy::config {

/// The names that the options of device-map-distributed list; `option` gives the value of one.
DistributedNames distributedNames(const std::function<std::string(const char *option)> &option);

} // namespace devicetidy::config
