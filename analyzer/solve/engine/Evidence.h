//===- Evidence.h - what speaks for a mistake that a caller decides -*- C++ -*-===//
//
// Where only a caller can tell whether two devices differ, the code around may tell what it is meant for:
// one argument is moved to a device and another is not; a class that chooses its device makes a tensor on the
// CPU. Without such evidence two things from outside are taken to be together, as callers keep them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Placement.h"
#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// A tensor that takes part in an operation, and its device there.
struct Witness {
  const TensorUse *use;
  const Placement *placement;
  bool isWritten = false; ///< the operation changes it
};

/// The origin of what nothing is known of but that the program asks where it is.
inline const Name askedForDevice("asked for its device");
/// The answer to the question whether a device is that of something of which nothing is known.
inline const Name isDeviceOfUnknown("is where something unknown is");

/// The list of devices over which a map spreads a model: it begins on the first, which its inputs are brought
/// to.
inline const Name spreadDevices("the devices of a map");

/// Is the entry called as the operation is, as numpy() of a class of one's own? It asks of its callers what
/// the operation asks.
bool isNamedAsOperation(const Call &call);

/// The verdict on `a` and `b`, which compare() has found to be up to a caller.
Verdict weigh(const Call &call, Verdict verdict, const Witness &a, const Witness &b);
/// The verdict on `memory` of a tensor from outside, which the host reads or writes.
Verdict weighAccess(const Call &call, const Placement &memory);
/// Does the step stand in the body of `function`?
bool isWrittenIn(const Step &step, const Function &function);
/// Is it the device of a tensor that a caller has passed to an earlier call of the entry's object?
bool isOfEarlierCall(const Call &call, const Placement &placement);
/// Has the code brought `tensor` to where it is? Then it has a reason, and knows what else is there.
bool wasBrought(const Call &call, const Value &tensor);
/// Is the row on a branch where something from outside was asked for its device and found on the CPU, or on
/// the device of something unknown? That branch is there for a run without GPUs: that it meets CUDA by
/// another way is a guess.
bool isRunOnCpu(const Row &row);
/// Is the row on the way of a handler that may never be entered?
bool hasRaised(const Row &row);

} // namespace devicetidy
