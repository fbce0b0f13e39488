//===- OptimizerState.h - what an optimizer keeps ---------------*- C++ -*-===//
//
// Momentum, moments and sums are made where each parameter is on the first step() (Adagrad makes its sums
// when it is constructed) and stay there: Module::to moves parameters only. Source:
// torch/csrc/api/src/optim/*.cpp, step().
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// A parameter of an optimizer that has one, with the cell it lives in.
std::vector<Value> optimizedBy(Call &call, const Value &optimizer);

/// step() of the one at `self`: what was kept of each parameter must be where the parameter is; what is not
/// kept yet is made.
void stepState(Call &call, const Address &self, const Value &optimizer);

/// Is `value` an optimizer?
bool isOptimizer(const Value &value);

/// The optimizer at `where` is loaded: what it keeps of each parameter is on `placement` afterwards. Nothing
/// is known of it when that is unknown.
void loadState(Call &call, const Address &where, const Placement &placement, const History &history);

/// The device of what `optimizer` keeps; unknown when it keeps nothing yet, or on several.
Placement stateDevice(const Call &call, const Value &optimizer);

/// Parameters are cells of modules, which are objects of their own.
Name keyOfParameter(const Address &cell);

} // namespace devicetidy
