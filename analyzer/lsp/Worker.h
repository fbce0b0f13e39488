//===- Worker.h - the thread that analyses ----------------------*- C++ -*-===//
//
// One analysis runs at a time, of the newest state: a change stops the current one. A change waits a moment
// for the next one; other changes are handled immediately. When the user types so steadily that
// nothing would ever be shown, an analysis may finish although it is not of the newest state. When
// idle the worker checks the disk from time to time, because not every editor reports changes by other
// programs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/lsp/Workspace.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace devicetidy::lsp {

class Worker {
public:
  /// From the worker's thread, `publish` is called with every result that was not stopped, and `making` as
  /// in Units. The number of a result is that of the call of analyse() with its documents.
  Worker(const driver::Options &options, std::function<void(Workspace::Result, std::uint64_t)> publish,
         std::function<void(bool)> making);
  ~Worker();

  enum class When { Now, AfterTyping };
  /// Requests an analysis of `documents` with `settings`. `onDisk`: files may have changed there. Returns the
  /// number of the call; it grows.
  std::uint64_t analyse(DocumentMap documents, Settings settings, When when, bool onDisk);

  /// Ends the thread. False when it did not end within `patience`.
  bool end(std::chrono::milliseconds patience);

private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    DocumentMap documents;
    Settings settings;
    std::uint64_t number = 0;
    bool onDisk = false;
  };

  void loop();
  void lookAtDisk(std::unique_lock<std::mutex> &lock);

  Workspace workspace;
  const std::function<void(Workspace::Result, std::uint64_t)> publish;
  std::mutex mutex;
  std::condition_variable wake, ended;
  Job job;
  Clock::time_point due;
  Clock::time_point lastChange;
  Clock::time_point jobSince; ///< time of the first change that no analysis has started with
  std::optional<Clock::time_point> behindSince; ///< time of the first change without a published result
  bool hasWork = false, isEnding = false, hasEnded = false;
  std::atomic<bool> stop{false};
  std::thread thread;
};

} // namespace devicetidy::lsp
