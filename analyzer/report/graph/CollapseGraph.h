//===- CollapseGraph.h - the picture of a function on a page ----*- C++ -*-===//
//
// Where a device is chosen at run time, everything after that is there once for each choice. On a page it is
// there once, in a lane named after all of them, and variables with one history share a box.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/graph/DeviceGraph.h"

namespace devicetidy {

/// `graph` with one node for what is the same but for its device, and with the variables listed in the box of
/// the step that brought them there. Each place of each variable is in exactly one box.
DeviceGraph collapsed(const DeviceGraph &graph);

} // namespace devicetidy
