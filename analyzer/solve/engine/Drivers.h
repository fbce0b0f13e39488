//===- Drivers.h - classes whose methods a library runs ---------*- C++ -*-===//
//
// A trainer of a library runs what a project derives from it: `train()` gets the batches, brings them to the
// device and gives them to `compute_loss()`. What such a method is given is not up to the callers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

#include <vector>

namespace devicetidy {

/// The methods of a library's model that run those of `className`, which derives from it.
std::vector<const Function *> driversOf(const Machine &machine, Name className);
/// May a driver of its class run `method`: does that override a method of the library's model?
bool isDriven(const Machine &machine, const Function &method);

} // namespace devicetidy
