//===- CurrentDevice.h - work that runs on the current GPU ------*- C++ -*-===//
//
// A kernel runs on the current GPU, whatever its arguments (CUDA C++ Programming Guide, "Device Selection").
// A tensor that a caller passes may be on any GPU, and the caller need not have made it the current one:
// LibTorch's own operators do so themselves (torchgen/dest/register_dispatch_key.py), and
// c10/cuda/CUDAGuard.h is how extensions do.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// The GPU that is current must be that of `memory`, a pointer into a tensor that `work` reads or writes.
/// Memory of the host is a Conflict, memory of a GPU that nothing made current a MissingGuard, memory that
/// was made before another GPU was made current a LostIndex. Where the work itself is not seen (`isSeen`),
/// memory of the host is no matter, and nothing is definite.
void requireCurrent(Call &call, const TensorUse &memory, const std::string &work, bool isSeen = true);
/// Two streams, events or communicators of one call must be of one GPU.
void requireSameGpu(Call &call, const Value &first, const Value &second);
/// A stream or a handle that `work` is given must be of the current GPU; any other value is no matter.
void requireCurrentHandle(Call &call, std::size_t operand, const std::string &work);
/// An index of a GPU that is the number of GPUs is a LostIndex.
void meetIndex(Call &call, Term index);
/// What `work` gets as the index of a GPU is none, or is that of another one.
void loseIndex(const Call &call, const std::string &work, PlacedOperand lost, IndexFault fault,
               Location decided = {}, Level level = Level::Likely);
/// `memory` must be on a GPU, whichever is current.
void requireGpu(Call &call, const TensorUse &memory, const std::string &work);

} // namespace devicetidy
