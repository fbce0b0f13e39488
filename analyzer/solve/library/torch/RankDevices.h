//===- RankDevices.h - ranks that end on one GPU ----------------*- C++ -*-===//
//
// A process of a distributed program has a GPU of its own: it reads its local rank and makes that GPU
// current. What it makes before, or on a GPU that the rank does not choose, each process makes on the same
// GPU. NCCL then says "Duplicate GPU detected" (init.cc), or one GPU runs out of memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// The program reads the environment variable `variable`.
void noteVariable(Call &call, Name variable);
/// The program writes the environment variable `variable`.
void noteVisibleDevices(Call &call, Name variable);
/// The call makes something on the current GPU that stays there: a stream, an event, a communicator.
void noteHandle(Call &call);
/// The call has made a GPU current; before it was `before`. What was made there is a RankCollision.
void meetSetDevice(Call &call, Term before);
/// The call puts a tensor or a module on `placement`: a RankCollision where each rank does so.
void meetPlacement(Call &call, const Placement &placement);

} // namespace devicetidy
