// Which call of the program made an autograd node: for errors of the backward pass, which runs in threads of
// its own, far from the program's lines. Only kept when error records are asked for.
#pragma once

#include "CallStack.h"

#include <c10/util/Optional.h>

#include <cstdint>

namespace vcuda {

// An operator is called on `thread` that makes the node with this number, if it makes one. LibTorch numbers
// the nodes of each thread; its profiler ties forward to backward by the same two numbers.
void noteForwardCall(uint64_t thread, int64_t sequenceNumber, const CallStack &stack);

// The call that made this node; none when it is too long ago.
c10::optional<CallStack> forwardCall(uint64_t thread, int64_t sequenceNumber);

} // namespace vcuda
