#include "process/Supervisor.h"

#include "base/Descendants.h"
#include "base/RunError.h"
#include "base/Text.h"

#include <fmt/format.h>

#include <algorithm>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace devicerun {

int RankFailure::exitCode() const {
  return WIFSIGNALED(status) ? ExitSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string RankFailure::describe() const {
  return WIFSIGNALED(status) ? "ended by " + describeSignal(WTERMSIG(status))
                             : fmt::format("exit code {}", WEXITSTATUS(status));
}

Supervisor::Supervisor(OutputQueue &out, OutputQueue &err, SignalSource &signals, const SignalBlock &block,
                       std::chrono::milliseconds killAfter)
    : out(out), err(err), signals(signals), block(block), killAfter(killAfter), parent(getppid()) {}

AttemptResult Supervisor::run(const std::vector<RankPlan> &plans, std::optional<Clock::time_point> until) {
  deadline = until;
  try {
    for (const RankPlan &plan : plans)
      start(plan);
  } catch (...) {
    abandon();
    throw;
  }
  while (!finished()) {
    waitForEvents(pollTimeout());
    handleSignals();
    reap();
    checkTime();
  }
  for (Rank &rank : ranks)
    for (RankOutput *stream : {rank.out.get(), rank.err.get()})
      if (stream)
        stream->finish();
  for (RankFailure &failure : result.failures)
    for (const Rank &rank : ranks)
      if (rank.rank == failure.rank && rank.err)
        failure.lastLines = rank.err->tail().lines();
  out.flush();
  err.flush();
  return std::move(result);
}

void Supervisor::start(const RankPlan &plan) {
  Rank rank{plan.rank, startRank(plan.command, block), plan.command.ownGroup, true, nullptr, nullptr};
  ranks.push_back(std::move(rank));
  Rank &started = ranks.back();
  if (!plan.command.captured)
    return;
  started.out = std::make_unique<RankOutput>(started.process.out, plan.prefix, plan.outLog, out);
  started.err = std::make_unique<RankOutput>(started.process.err, plan.prefix, plan.errLog, err);
}

// A rank could not be started: those that were must not go on alone.
void Supervisor::abandon() {
  killDescendants(static_cast<int>(grace.count()));
  ranks.clear();
}

void Supervisor::waitForEvents(int milliseconds) {
  std::vector<pollfd> polled = {{signals.fd(), POLLIN, 0}};
  std::vector<RankOutput *> streams = {nullptr};
  auto add = [&](RankOutput *stream, const OutputQueue &queue) {
    if (!stream || !stream->open() || queue.full())
      return;
    polled.push_back({stream->fd(), POLLIN, 0});
    streams.push_back(stream);
  };
  for (Rank &rank : ranks) {
    add(rank.out.get(), out);
    add(rank.err.get(), err);
  }
  for (OutputQueue *queue : {&out, &err})
    if (!queue->empty() && !queue->broken()) {
      polled.push_back({queue->fd(), POLLOUT, 0});
      streams.push_back(nullptr);
    }
  if (poll(polled.data(), polled.size(), milliseconds) <= 0)
    return;
  for (std::size_t i = 0; i < polled.size(); ++i)
    if (streams[i] && polled[i].revents)
      streams[i]->receive();
  out.flush();
  err.flush();
  if (out.broken() && !killAt)
    beginEnding(Outcome::OutputClosed);
}

int Supervisor::pollTimeout() const {
  Clock::time_point next = Clock::now() + std::chrono::minutes(1);
  if (leftoverSince)
    next = std::min(next, Clock::now() + std::chrono::milliseconds(20));
  if (killAt)
    next = std::min(next, *killAt);
  else if (deadline)
    next = std::min(next, *deadline);
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left + 1, 0));
}

void Supervisor::handleSignals() {
  while (std::optional<ReceivedSignal> signal = signals.next()) {
    if (signal->number == SIGCHLD)
      continue;
    if (result.signal == 0) {
      firstSignal = Clock::now();
      result.signal = signal->number;
      if (!killAt)
        interrupt(*signal);
    } else if (Clock::now() - firstSignal > std::chrono::milliseconds(500)) {
      // One Ctrl-C may arrive twice; later than that the user is impatient.
      killAt = Clock::now();
    }
  }
}

void Supervisor::interrupt(const ReceivedSignal &signal) {
  // When the guardian is gone, nothing waits for the ranks any more.
  const std::chrono::milliseconds patience = getppid() == parent ? killAfter : std::min(grace, killAfter);
  say(fmt::format("{}: ending the ranks, which have {:g} s", describeSignal(signal.number),
                  std::chrono::duration<double>(patience).count()));
  noteEnded(Outcome::Interrupted);
  killAt = Clock::now() + patience;
  // What the launcher ignores its ranks ignore too.
  const int passedOn = isIgnored(signal.number) ? SIGTERM : signal.number;
  signalAll(passedOn, /*ownGroupToo=*/!signal.fromTerminal || passedOn != signal.number);
}

void Supervisor::reap() {
  ++round;
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG))
    for (Rank &rank : ranks)
      if (rank.process.pid == pid && rank.running)
        noteEnd(rank, status);
  bool failedNow = !result.failures.empty() && result.failures.back().round == round;
  if (!failedNow || killAt)
    return;
  const RankFailure &failure = result.failures.front();
  bool others = std::any_of(ranks.begin(), ranks.end(), [](const Rank &rank) { return rank.running; });
  // What a single rank did is seen in its own output.
  if (ranks.size() > 1)
    say(fmt::format("rank {} failed, {}{}", failure.rank, failure.describe(),
                    others ? "; ending the other ranks" : ""));
  beginEnding(Outcome::RankFailed);
}

void Supervisor::noteEnd(Rank &rank, int status) {
  rank.running = false;
  bool endedByUs =
      killAt && WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL);
  if (status == 0 || endedByUs)
    return;
  // With a terminal of its own the rank got the same Ctrl-C as the launcher.
  if (result.outcome == Outcome::Interrupted)
    return;
  result.failures.push_back({rank.rank, rank.process.pid, status, round, {}});
}

void Supervisor::checkTime() {
  Clock::time_point now = Clock::now();
  bool anyRunning = std::any_of(ranks.begin(), ranks.end(), [](const Rank &rank) { return rank.running; });
  if (deadline && now >= *deadline && !killAt && anyRunning) {
    say("the time is over (--timeout): ending the ranks");
    beginEnding(Outcome::TimedOut);
  }
  if (leftoverSince && !leftoversTold && now - *leftoverSince > leftoverGrace)
    endLeftovers();
  if (killAt && now >= *killAt) {
    signalAll(SIGKILL);
    killAt = now + std::chrono::milliseconds(100); // again, for what was started in between
  }
}

// Processes that ranks left behind, and those that take no notice of the signal which ended the ranks.
void Supervisor::endLeftovers() {
  leftoversTold = true;
  const Clock::time_point latest = Clock::now() + grace;
  if (!killAt)
    say("the ranks are done but left processes behind; ending those");
  signalAll(SIGTERM);
  killAt = std::min(killAt.value_or(latest), latest);
}

bool Supervisor::finished() {
  for (const Rank &rank : ranks)
    if (rank.running)
      return false;
  if (descendantsOf(getpid()).empty())
    return true;
  if (!leftoverSince)
    leftoverSince = Clock::now();
  return false;
}

void Supervisor::noteEnded(Outcome reason) {
  result.outcome = reason;
  for (const Rank &rank : ranks)
    if (rank.running)
      result.endedRanks.push_back(rank.rank);
}

void Supervisor::beginEnding(Outcome reason) {
  noteEnded(reason);
  killAt = Clock::now() + grace;
  signalAll(SIGTERM);
}

void Supervisor::signalAll(int signal, bool ownGroupToo) {
  std::vector<pid_t> groups;
  for (const Rank &rank : ranks)
    // The number of a group whose leader is gone may belong to another group by now.
    if (rank.ownGroup && rank.running) {
      groups.push_back(rank.process.pid);
      kill(-rank.process.pid, signal);
      kill(-rank.process.pid, SIGCONT); // a stopped process does not act on SIGTERM
    }
  if (!ownGroupToo)
    groups.push_back(getpgrp());
  for (pid_t pid : descendantsOf(getpid()))
    if (std::find(groups.begin(), groups.end(), getpgid(pid)) == groups.end()) {
      kill(pid, signal);
      kill(pid, SIGCONT);
    }
}

void Supervisor::say(const std::string &text) { err.buffer() += "device-run: " + text + "\n"; }

} // namespace devicerun
