//===- HostAccess.h - host code and the memory of tensors -------*- C++ -*-===//
//
// A pointer into a tensor's memory is a value that remembers the tensor, wherever in it the pointer points.
// Handing it on is no mistake, for kernels take such pointers; reading or writing through it on the host is
// one when the tensor is on a GPU (c10/core/Allocator.h: DataPtr holds an address of its device). The other
// way round, from_blob() believes what its options say about the memory it is given
// (aten/src/ATen/templates/Functions.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/TensorMemory.h"
#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// The tensor that such a pointer points into; unknown when a join has lost it.
Value tensorBehind(const Value &pointer);
/// Such a pointer as a use of its tensor; `operand` is where it is used.
TensorUse memoryUse(const Value &pointer, const Operand &operand);

/// The host reads or writes at operand 0 of a fact, which is such a pointer.
void meetHostAccess(Call &call);

/// A library function or constructor that works on the host's memory gets such pointers.
void meetHostFunction(Call &call);

/// from_blob() with a tensor on `placement` as its result gets a pointer whose memory is elsewhere.
void meetBlob(Call &call, const Placement &placement);

} // namespace devicetidy
