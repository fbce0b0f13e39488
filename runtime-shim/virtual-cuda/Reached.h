//===- Reached.h - frames that called operators -----------------*- C++ -*-===//
//
// The frames of the program that called some operator.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CallStack.h"

#include <string>

namespace vcuda {

/// Writes a record for each frame of `stack` that was never seen before.
void noteReached(const std::string &op, const CallStack &stack);

} // namespace vcuda
