//===- Liveness.h - detects dead ranks --------------------------*- C++ -*-===//
//
// Finding out that a rank died.
//
// Every rank counts up a heartbeat at the store and watches that of the next rank; a rank that finds another
// one dead writes it down at the store, where all look. That is a handful of requests per rank and beat,
// however many ranks there are. A process of the same machine is also looked up by its number, which needs no
// waiting. The death of the process that holds the store shows as a broken connection.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Compat.h"
#include "comm/Standstill.h"
#include "comm/UnderWay.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace device_shim::detail {

/// What a rank tells the others about its process, one line of text.
struct ProcessIdentity {
  std::string host;
  std::string space; ///< boot id and process-id namespace: only there a pid means something
  long pid = 0;

  static ProcessIdentity own();
  std::string text() const;
  static ProcessIdentity fromText(const std::string &text);
  /// "process 4711 on gpu01"
  std::string readable() const;
};

class Liveness {
public:
  struct Settings {
    int rank = 0;
    int size = 1;
    bool holdsStore = false;
    std::string storeAddress; ///< for messages
    std::chrono::milliseconds timeout{0};
    std::chrono::milliseconds grace{0};
    std::chrono::milliseconds leaveTimeout{0};
    std::chrono::milliseconds collectiveTimeout{0};
  };

  /// `store` is a connection of its own, and holds the identity of every rank under identityKey().
  Liveness(c10::intrusive_ptr<c10d::Store> store, Settings settings);
  static std::string identityKey(int rank) { return "identity/" + std::to_string(rank); }
  ~Liveness();

  /// \throws PeerError when a rank is known to be dead.
  void throwIfFailed(const std::string &operation);
  /// The job has failed, which throwIfFailed() then says on all ranks: a collective broke off with `cause`,
  /// after it is known which rank died; ranks did not come; they called different operations.
  void reportBrokenConnection(const std::string &operation, const std::string &cause);
  void reportTimeout(const std::string &operation, std::chrono::milliseconds after);
  void reportDifference(const std::string &what);

  bool hasFailed() const;

  /// Counts the operations that this rank has begun; the count tells the ranks apart that do not come.
  void began(int channel, int64_t number) {
    ++begun;
    standstill.called(channel, number);
  }
  Standstill &waits() { return standstill; }
  int64_t operationsBegun() const { return begun; }
  /// Watches an operation that this rank waits for on a device only; `isOver` is called by the watching
  /// thread.
  void watchDevice(const std::string &operation, int64_t number, std::function<bool()> isOver) {
    underWay.add(operation, number, std::move(isOver));
  }
  /// This rank begins no operation any more, but is not gone: others that still wait for one shall not wait
  /// for it. \throws what the store throws.
  void announceLeaving();

  /// The process ends while this rank is in the job, for whoever finds it gone.
  void processExits();

  /// Ends the watching: this rank is done, or `failed`. The rank with the store stays until the others are
  /// done.
  void leave(bool failed);

private:
  void run();
  bool beat();
  void watchNext();
  void setNext(int rank);
  void watchUnderWay();
  void watchStandstill();
  void fail(const std::string &what);
  void report(const std::string &what, bool rankDied);
  std::string operationsOfAll();
  std::string finishedRanks();
  [[noreturn]] void throwFailure(const std::string &operation);
  bool allLeft();
  void waitUntilTold();
  void endProcessAfterGrace();

  c10::intrusive_ptr<c10d::Store> store;
  Settings settings;
  // The next rank that has not left yet; this rank itself when all others have.
  int nextRank = 0;
  ProcessIdentity next;
  int64_t nextBeats = -1;
  std::chrono::steady_clock::time_point nextSeen;
  std::atomic<int64_t> begun{0};
  int64_t begunTold = 0; ///< as much of it as the store knows
  UnderWay underWay;
  Standstill standstill;
  bool toldOfWait = false;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::string failure;
  bool acknowledged = false;
  bool stopping = false;
  bool stoppingAsFailed = false;
  std::thread thread;
};

} // namespace device_shim::detail
