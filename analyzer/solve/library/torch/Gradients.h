//===- Gradients.h - gradients that a move leaves behind --------*- C++ -*-===//
//
// After backward() the gradient of a parameter is where the parameter is. Module::to then moves the
// parameters and not their gradients. The next step() of the optimizer meets both, and so does the next
// backward() when the parameters were used in between, for it adds to the gradients that are there.
// zero_grad() fills gradients with zeros before LibTorch 2.0 and drops them since. Sources: torch/nn/module.h
// (to_impl sets the data of parameters only), torch/csrc/autograd/functions/accumulate_grad.h,
// torch/csrc/api/src/optim/optimizer.cpp (zero_grad).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// An operation used `uses`, parameters that were moved may be among them.
void noteUsed(Machine &machine, Row &row, const std::vector<TensorUse> &uses);
/// The parameters in `record`, the module at `where`, are being moved to `placement`.
void noteMoved(Machine &machine, Row &row, const Address &where, const Value &record,
               const Placement &placement);

} // namespace devicetidy
