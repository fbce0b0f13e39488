//===- Standstill.h - ranks that wait for each other ------------*- C++ -*-===//
//
// Ranks that wait for each other in different operations: as where one evaluates alone, on one communicator,
// and the others train, on another. Each is as it should be alone; only together they never end.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace device_shim::detail {

class Standstill {
public:
  /// An operation: the `number`th, from 1, of a channel.
  struct Place {
    int channel = 0;
    int64_t number = 0;
    std::string what;
  };

  /// This rank has called an operation. From any thread.
  void called(int channel, int64_t number);

  /// While one lives, its thread waits until all ranks have called an operation.
  class Wait {
  public:
    Wait(Standstill *ofRank, Place place);
    ~Wait();
    Wait(const Wait &) = delete;
    Wait &operator=(const Wait &) = delete;

  private:
    Standstill *standstill; ///< null: nobody watches
  };

  /// What a rank that waits tells the others, and what it has called.
  struct Record {
    int64_t wait = 0; ///< which of this rank's waits it is
    int64_t told = 0; ///< how often it was told
    Place place;
    std::map<int, int64_t> called; ///< by channel

    std::string text() const;
    static std::optional<Record> fromText(const std::string &text);
  };
  /// Called once per beat: nothing unless all threads of this rank that ever waited and still live do, and
  /// did so in the same operation at the last beat.
  std::optional<Record> look();
  /// Whether this rank and `rank`, which told `theirs`, can both never go on: each waits for what the other
  /// has not called. True from the second time on, because the first may be old.
  bool neverEnds(const Record &own, int rank, const Record &theirs);

private:
  struct Waiting {
    int64_t id = 0;
    Place place;
  };
  std::mutex mutex;
  struct Thread {
    std::weak_ptr<char> life; ///< expires with it
    std::optional<Waiting> waiting;
  };
  std::map<std::thread::id, Thread> threads; ///< that ever waited
  std::map<int, int64_t> calls;
  int64_t waits = 0;
  int64_t seen = 0; ///< the wait at the last beat
  int64_t told = 0;
  struct Pair {
    int rank = -1;
    int64_t own = 0, theirs = 0, told = 0;
  } suspected;
};

} // namespace device_shim::detail
