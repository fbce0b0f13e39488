//===- Supervisor.h - the ranks of one attempt ------------------*- C++ -*-===//
//
// Starts the ranks, passes on their output, and ends all of them when one fails.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Signals.h"
#include "process/OutputQueue.h"
#include "process/RankOutput.h"
#include "process/RankProcess.h"

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace devicerun {

using Clock = std::chrono::steady_clock;

/// One rank as the supervisor needs it.
struct RankPlan {
  int rank = 0;
  RankCommand command;
  std::string prefix; ///< before each line, or empty
  std::string outLog; ///< files to copy the output to, or empty
  std::string errLog;
};

enum class Outcome { Success, RankFailed, TimedOut, Interrupted, OutputClosed };

/// How a rank ended that was not ended by us.
struct RankFailure {
  int rank = 0;
  pid_t pid = 0;
  int status = 0; ///< as waitpid gives it
  int round = 0;  ///< failures of one round were noticed together: which was first is unknown
  std::deque<std::string> lastLines;

  /// The code a shell would give.
  int exitCode() const;
  /// "exit code 3", "SIGSEGV (segmentation fault)".
  std::string describe() const;
};

struct AttemptResult {
  Outcome outcome = Outcome::Success;
  int signal = 0;                    ///< when interrupted
  std::vector<RankFailure> failures; ///< in the order in which they were noticed
  std::vector<int> endedRanks;       ///< those that were still running when the job was ended
};

/// Starts ranks and stays with them until every process they started is gone.
///
/// The first failure, the deadline or a closed standard output end the attempt: SIGTERM to every process
/// group and to every other process below this one, and after `grace` SIGKILL. A signal ends it too: the
/// ranks get the same one and have `killAfter`, long enough to save what they have. A second signal half a
/// second or more after the first kills at once.
class Supervisor {
public:
  static constexpr std::chrono::milliseconds grace{3000};
  /// How long processes that outlive a successful job have to end by themselves.
  static constexpr std::chrono::milliseconds leftoverGrace{500};

  Supervisor(OutputQueue &out, OutputQueue &err, SignalSource &signals, const SignalBlock &block,
             std::chrono::milliseconds killAfter);

  AttemptResult run(const std::vector<RankPlan> &plans, std::optional<Clock::time_point> deadline);

private:
  struct Rank {
    int rank;
    RankProcess process;
    bool ownGroup;
    bool running = true;
    std::unique_ptr<RankOutput> out;
    std::unique_ptr<RankOutput> err;
  };

  void start(const RankPlan &plan);
  void abandon();
  void waitForEvents(int milliseconds);
  int pollTimeout() const;
  void handleSignals();
  void reap();
  void noteEnd(Rank &rank, int status);
  void checkTime();
  bool finished();
  void interrupt(const ReceivedSignal &signal);
  void beginEnding(Outcome reason);
  void noteEnded(Outcome reason);
  void endLeftovers();
  void signalAll(int signal, bool ownGroupToo = true);
  void say(const std::string &text);

  OutputQueue &out;
  OutputQueue &err;
  SignalSource &signals;
  const SignalBlock &block;
  std::chrono::milliseconds killAfter;
  pid_t parent; ///< the guardian, while it lives
  std::vector<Rank> ranks;
  AttemptResult result;
  std::optional<Clock::time_point> deadline;
  std::optional<Clock::time_point> killAt;        ///< set while the attempt is being ended
  std::optional<Clock::time_point> leftoverSince; ///< set when only descendants of ranks are left
  bool leftoversTold = false;
  Clock::time_point firstSignal;
  int round = 0;
};

} // namespace devicerun
