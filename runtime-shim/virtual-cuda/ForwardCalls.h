//===- ForwardCalls.h - calls that made autograd nodes ----------*- C++ -*-===//
//
// Which call of the program made an autograd node: for errors of the backward pass, which runs in threads of
// its own, far from the program's lines. Only kept when error records are asked for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CallStack.h"

#include <c10/util/Optional.h>

#include <cstdint>

namespace vcuda {

/// LibTorch numbers the nodes of each thread; its profiler ties forward to backward by thread and number.
/// Whether this thread made nodes since it last noted or skipped some.
bool newNodes();

/// The call that is being made has made them; they belong to no call that is known.
void noteNewNodes(uint64_t thread, const CallStack &stack);
void skipNewNodes();

/// The call that made this node; none when it is too long ago.
c10::optional<CallStack> forwardCall(uint64_t thread, int64_t sequenceNumber);

} // namespace vcuda
