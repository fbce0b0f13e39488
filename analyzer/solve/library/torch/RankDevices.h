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
/// The rank among all machines is asked for, in another way.
void noteGlobalRank(Call &call);
/// Is `name` that of the rank among all machines: of an environment variable, an attribute?
bool isGlobalRank(std::string_view name);
/// The program writes the environment variable `variable`.
void noteVisibleDevices(Call &call, Name variable);
/// The ranks are joined, to work on GPUs.
void noteRanksJoined(Call &call, const std::string &operation);
/// A library has made the GPU of the rank current.
void noteOwnGpu(Call &call);
/// A GPU of the rank is used by its index.
void noteRankGpu(Call &call);
/// `index` is to be that of a GPU; `what` gets it. The rank among all machines is none.
void meetRankIndex(Call &call, Term index, const std::string &what);
/// Does the row know which rank it is, or that there are no ranks?
bool isOneRank(const Row &row);
/// Where the row has found that there are ranks; an invalid place where it has not.
Location ranksAskedAt(Machine &machine, const Row &row);
void collide(Call &call, RankCollision collision);
/// Ranks that were joined without a GPU for each, when all has been run.
void reportRanks(Machine &machine);
/// The call makes something on the current GPU that stays there: a stream, an event, a communicator.
void noteHandle(Call &call, std::string what = {});
/// The call has made a GPU current; before it was `before`. What was made there is a RankCollision, unless
/// the GPU is current for a block only.
void meetSetDevice(Call &call, Term before, bool isForBlock = false);
/// The call puts a tensor or a module on `placement`: a RankCollision where each rank does so.
void meetPlacement(Call &call, const Placement &placement);

} // namespace devicetidy
