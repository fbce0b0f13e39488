//===- Loads.h - loads that name no device ----------------------*- C++ -*-===//
//
// torch.load(f) puts everything where it was saved: in each rank on the GPU of the one that saved it, or on a
// GPU that is not there. What is done with it shows whether that is meant.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/library/python/Python.h"

namespace devicetidy::python {

/// unmapped(): the user's call loads something without map_location.
Value noteUnmappedLoad(Call &call, Row &row, const Given &given);

} // namespace devicetidy::python
