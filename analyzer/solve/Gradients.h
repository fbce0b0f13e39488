//===- Gradients.h - gradients that a move leaves behind --------*- C++ -*-===//
//
// After backward() the gradient of a parameter is where the parameter is. Module::to then moves the
// parameters and not their gradients, and the next step() of the optimizer meets both. Source:
// torch/nn/module.h (to_impl), which sets the data of parameters only.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/Machine.h"

namespace devicetidy {

/// backward() has run: gradients are where their parameters are.
void noteBackward(Machine &machine, Row &row);
/// The parameters in `record`, the module at `where`, are being moved to `placement`.
void noteMoved(Machine &machine, Row &row, const Address &where, const Value &record,
               const Placement &placement);
/// zero_grad() of modules and optimizers, and step() of optimizers; nothing for other calls.
std::optional<Outcomes> modelGradients(Call &call);

} // namespace devicetidy
