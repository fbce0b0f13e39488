//===- Channel.h - a process group whose ranks agree ------------*- C++ -*-===//
//
// A process group of c10d, and the order in which its operations are started.
//
// c10d takes it for granted that all ranks call the same operations: else Gloo ends the process, NCCL waits
// for ever, or tensors of different steps are added. Here each operation is described in a line of text that
// the ranks compare before it starts. They do so on a thread of the channel, because operations of several
// channels may be called in another order on each rank. With NCCL operations start at once, and the
// comparison goes beside them over the store of the job, for NCCL itself moves no text.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Compat.h"
#include "comm/Liveness.h"

#include <c10/core/Stream.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace device_shim::detail {

class Channel {
public:
  using Group = c10::intrusive_ptr<compat::Collectives>;
  using Work = c10::intrusive_ptr<c10d::Work>;
  using Call = std::function<Work(compat::Collectives &)>;
  using Launched = std::shared_future<Work>;
  using Store = c10::intrusive_ptr<c10d::Store>;

  struct Settings {
    int number = 0; ///< the same on all ranks
    int rank = 0;
    int size = 1;
    std::shared_ptr<Liveness> liveness; ///< may be null
    std::chrono::milliseconds timeout{0};
  };
  /// The ranks compare over `group`, and an operation starts when they have; with a `store`, which belongs to
  /// this channel alone, they compare over that, and operations start at once.
  Channel(Settings settings, Group group, Store store);
  /// Ends when what was called is started.
  ~Channel();
  Channel(const Channel &) = delete;
  Channel &operator=(const Channel &) = delete;

  /// Starts `call`, which is null where an operation has nothing to do on any rank. `what` describes it, the
  /// same on all ranks, in at most kMostText bytes; it begins with `name`. The work comes with the result,
  /// null without a call; what fails is thrown there: PeerError when another rank has called something else,
  /// and the job has failed then, c10::Error for the caller's mistakes. With a store it is ready, and the
  /// failure is that of the job. `device`: on whose current stream the tensors of the call are ready.
  Launched start(const char *name, const std::string &what, at::Device device, Call call);
  static constexpr int64_t kMostText = 96;

  /// Why no operation is started any more; "" while they are.
  std::string problem() const;

  int number() const { return settings.number; }
  /// How many operations were started, from 1: the number of the last.
  int64_t started() const { return count; }
  /// Forgets the groups without ending them, which a dead rank could hold up.
  void abandon();
  compat::Collectives &collectives() { return *group; }

private:
  struct Item {
    const char *name;
    std::string what;
    c10::Stream stream;
    Call call;
    int64_t number; ///< of the operation, from 1
    std::promise<Work> result;
  };
  struct Queue; // shared with the thread, which may outlive the channel when it is abandoned

  void end(bool abandoning);

  Settings settings;
  Group group;
  std::shared_ptr<Queue> queue;
  std::thread thread;
  std::atomic<int64_t> count{0};
};

} // namespace device_shim::detail
