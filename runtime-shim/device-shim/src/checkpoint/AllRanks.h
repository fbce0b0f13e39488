//===- AllRanks.h - what holds for all ranks or for none --------*- C++ -*-===//
//
// Saving and loading end in one way on all ranks: a failure of one is an error on each.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <device_shim/Communicator.h>

#include <functional>
#include <string>

namespace device_shim::detail {

/// Runs `work`, which saves, on rank 0. \throws Error on every rank when it throws there. Collective.
void onRankZero(Communicator &ranks, const std::function<void()> &work);

/// Runs `work`, which reads, on every rank. When it throws on one, as where a node lacks the file, it must
/// not take effect on any: throws its exception there, and on the others an Error that says why. Collective.
void onAllRanks(Communicator &ranks, const std::function<void()> &work);

/// Nodes may have folders of their own, and a model would be made of parts of several. `digest` is that of
/// the values in the file. \throws Error on every rank when it differs on one. Collective.
void requireSameFile(Communicator &ranks, const std::string &digest, const std::string &path);

} // namespace device_shim::detail
