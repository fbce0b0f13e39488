//===- Rendezvous.h - how ranks find each other -----------------*- C++ -*-===//
//
// How the ranks of a job find each other.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "comm/Backing.h"

#include <device_shim/Distributed.h>
#include <device_shim/LaunchEnvironment.h>

namespace device_shim::detail {

/// Opens the store, checks that all ranks came and agree, and begins to watch them. Fills job.store and
/// .liveness.
/// \throws InitError
void meet(Job &job, const LaunchEnvironment &place, const DistributedOptions &options);

/// Makes the first communicator of a job and tries it.
/// \throws InitError, also when `timeout` passes or another rank fails meanwhile
std::shared_ptr<Backing> connect(const std::shared_ptr<Job> &job, std::chrono::milliseconds timeout);

} // namespace device_shim::detail
