//===- Backing.h - the implementation of a communicator ---------*- C++ -*-===//
//
// The parts of a communicator: c10d's process group, the store, and the watching of the other ranks.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Compat.h"
#include "comm/Liveness.h"
#include "comm/Operation.h"

#include <device_shim/Communicator.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace device_shim::detail {

/// One job: what all communicators of this process share. Its end is the end of the job for this rank.
struct Job {
  int rank = 0;
  int size = 1;
  int localRank = 0;
  at::Device device = at::kCPU;
  bool nccl = false;
  std::string masterAddress;
  std::chrono::milliseconds collectiveTimeout{0};
  c10::intrusive_ptr<c10d::Store> store; ///< null with one rank
  std::shared_ptr<Liveness> liveness;    ///< null with one rank, or when not wanted
  int groups = 0;                        ///< how many groups were made for it
  /// Groups whose communicator is gone, by their number, for the next communicators: a group of NCCL has
  /// device memory of its own. They end together with the job: NCCL wants all ranks to end a group at the
  /// same time and several groups in the same order.
  std::map<int, c10::intrusive_ptr<compat::Collectives>> idle;

  ~Job();

private:
  bool isBroken() const;
  bool allLeaveWell();
  void endGroups();
};

class Backing {
public:
  /// Connects to the other ranks.
  explicit Backing(std::shared_ptr<Job> job);
  /// Takes the idle group `number` of the job.
  Backing(std::shared_ptr<Job> job, int number);
  ~Backing();

  const Job &job() const { return *common; }
  std::shared_ptr<Job> sharedJob() const { return common; }
  /// Null with one rank.
  compat::Collectives *collectives() const { return group.get(); }

  /// Starts an operation; `tensors` are kept until it is over.
  Pending start(const char *name, c10::intrusive_ptr<c10d::Work> work, std::vector<at::Tensor> tensors,
                std::function<void()> finish) const;
  /// Runs `call`, whose failure is that of a peer.
  c10::intrusive_ptr<c10d::Work> launch(const char *name,
                                        const std::function<c10::intrusive_ptr<c10d::Work>()> &call) const;

private:
  std::shared_ptr<Job> common;
  int number = 0; ///< of its group, the same on all ranks; idle groups are found by it
  c10::intrusive_ptr<compat::Collectives> group;
};

/// A process group of all ranks of `job`, whose keys at the store begin with `prefix`.
c10::intrusive_ptr<compat::Collectives> makeCollectives(const Job &job, const std::string &prefix);

/// Whether this build can make process groups of a kind.
bool hasGloo();
bool hasNccl();

} // namespace device_shim::detail
