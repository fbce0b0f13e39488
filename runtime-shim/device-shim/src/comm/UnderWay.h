//===- UnderWay.h - operations a device still executes ----------*- C++ -*-===//
//
// Operations that a device still executes while the host has gone on: NCCL's, whose wait() blocks a stream
// only.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace device_shim::detail {

class UnderWay {
public:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    std::string operation;
    int64_t number = 0; ///< which of the job's operations it is, from 1
    Clock::time_point since;
  };

  /// From any thread. `isOver` is called by look(), and must not wait.
  void add(const std::string &operation, int64_t number, std::function<bool()> isOver);

  struct Range {
    Entry oldest, newest;
  };
  /// Forgets what is over, and says what is not.
  std::optional<Range> look();

private:
  struct Watched {
    Entry entry;
    std::function<bool()> isOver;
  };
  std::mutex mutex;
  std::deque<Watched> all; // in the order in which they end
};

} // namespace device_shim::detail
