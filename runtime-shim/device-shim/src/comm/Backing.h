//===- Backing.h - the implementation of a communicator ---------*- C++ -*-===//
//
// The parts of a communicator: c10d's process group, the store, and the watching of the other ranks.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Compat.h"
#include "comm/Channel.h"
#include "comm/Liveness.h"
#include "comm/Operation.h"

#include <device_shim/Communicator.h>

#include <chrono>
#include <functional>
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
  /// Channels whose communicator is gone, by their number, for the next communicators: a group of NCCL has
  /// device memory of its own. They end together with the job: NCCL wants all ranks to end a group at the
  /// same time and several groups in the same order.
  std::map<int, std::unique_ptr<Channel>> idle;

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
  /// Takes the idle channel `number` of the job.
  Backing(std::shared_ptr<Job> job, int number);
  ~Backing();

  const Job &job() const { return *common; }
  std::shared_ptr<Job> sharedJob() const { return common; }
  /// With one rank there is nothing to do.
  bool isAlone() const { return !channel; }

  /// Starts an operation, see Channel::start(); `tensors`, of which the first says on which device it is, are
  /// kept until it is over, and `finish` runs in wait(). \throws PeerError when the job has failed.
  Pending start(const char *name, const std::string &what, std::vector<at::Tensor> tensors,
                Channel::Call call, std::function<void()> finish) const;

private:
  std::shared_ptr<Job> common;
  std::unique_ptr<Channel> channel;
};

/// A channel between all ranks of `job`, the `number`th, the same on all.
std::unique_ptr<Channel> makeChannel(const Job &job, int number);

/// Whether this build can make process groups of NCCL.
bool hasNccl();

} // namespace device_shim::detail
