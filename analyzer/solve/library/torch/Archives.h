//===- Archives.h - what is saved and loaded --------------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// A call without a model gets the stream at operand `i`: what it holds may be something else afterwards.
void forgetSaved(Call &call, std::size_t i);

/// Where a load without a device puts what was saved in another run. `isResumed`: what it replaces had been
/// put on a device, which may well be the one that was saved.
Placement placementOfSaved(const Call &call, bool isResumed);

/// The history of what is loaded onto `placement`.
History historyOfLoad(const Call &call, const std::string &subject, const Placement &placement);

} // namespace devicetidy
