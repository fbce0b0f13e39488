//===- Movers.h - members that a hand-written to() forgets ------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Evidence.h"

namespace devicetidy {

/// Does the function move the object that it is a method of, as to() and cuda() do?
bool isMover(const Function &function);

/// Is `left` a member that the to() of its class moves, of a class that does not remember the device? Who
/// puts something there calls that, or has called it too early.
bool isMovedAlong(const Call &call, const TensorUse &left);

/// Did the object that holds `moved` move it with its own to(), which leaves `left` where that was?
bool isForgottenByMover(const Call &call, const Witness &moved, const Witness &left);

/// Is `left` that of a member of an object from outside, of a class whose to() does not move it, though
/// others of its members, and `moved` that of one of these or of a device they may be moved to?
bool isForgottenMember(const Call &call, const Placement &moved, const Placement &left);

} // namespace devicetidy
