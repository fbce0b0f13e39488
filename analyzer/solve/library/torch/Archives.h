//===- Archives.h - what is saved and loaded --------------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// A call without a model gets the stream at operand `i`: what it holds may be something else afterwards.
void forgetSaved(Call &call, std::size_t i);

/// Where a load without a device puts what was saved in another run.
Placement placementOfSaved(const Call &call);

/// The history of what is loaded onto `placement`.
History historyOfLoad(const Call &call, const std::string &subject, const Placement &placement);

} // namespace devicetidy
