#include "launch/Job.h"

#include "base/ElfNeeded.h"
#include "base/FreePort.h"
#include "base/RunError.h"
#include "base/Text.h"
#include "launch/VirtualGpus.h"
#include "process/Supervisor.h"
#include "records/ErrorReport.h"
#include "records/MemoryReport.h"
#include "records/Records.h"
#include "records/SourceFiles.h"
#include "records/TraceMerge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>

#include <sys/wait.h>
#include <unistd.h>

namespace devicerun {
namespace {

namespace fs = std::filesystem;

/// One job from its first attempt to its reports.
class Job {
public:
  Job(JobPlan &plan, const SignalBlock &block) : plan(plan), block(block) {
    if (plan.options.timeoutSeconds)
      deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(*plan.options.timeoutSeconds));
  }

  int run();

private:
  const Options &options() const { return plan.options; }
  void say(const std::string &text) { err.buffer() += "device-run: " + text + "\n"; }
  void printNotes();
  void makeLogDirectory();
  AttemptResult runAttempt(int attempt);
  Rendezvous rendezvous(int attempt, std::optional<PortReservation> &reservation) const;
  RankPlan rankPlan(const RankIdentity &who, const Rendezvous &where, int attempt) const;
  RankIdentity identity(int localRank) const;
  std::string recordsOf(int attempt) const;
  std::string logFolder(int attempt, int rank) const;
  std::optional<RankFailure> firstFailure(const AttemptResult &result, int attempt) const;
  void printFailure(const AttemptResult &result, const std::optional<RankFailure> &first, int attempt);
  std::optional<ErrorRecord> lastErrorOf(const RankFailure &failure, int attempt) const;
  void explainDeviceError(const RankFailure &failure, int attempt);
  void printMemory(int attempt);
  RunRecords runRecords(int lastAttempt) const;
  std::optional<std::vector<std::string>> sourcesOf(const std::vector<ReachedFrame> &reached) const;
  bool writeReports(int lastAttempt);
  int exitCode(const AttemptResult &result, const std::optional<RankFailure> &first) const;

  JobPlan &plan;
  const SignalBlock &block;
  SignalSource signals;
  OutputQueue out{STDOUT_FILENO};
  OutputQueue err{STDERR_FILENO};
  FrameResolver resolver;
  std::optional<Clock::time_point> deadline;
  std::string logRun; ///< this run's own directory in --log-dir
};

int Job::run() {
  printNotes();
  makeLogDirectory();
  int attempt = 0;
  AttemptResult result = runAttempt(attempt);
  std::optional<RankFailure> first = firstFailure(result, attempt);
  while (result.outcome == Outcome::RankFailed && attempt < options().maxRestarts) {
    printFailure(result, first, attempt);
    say(fmt::format("starting all ranks again, restart {} of {}", ++attempt, options().maxRestarts));
    result = runAttempt(attempt);
    first = firstFailure(result, attempt);
  }
  // Nothing runs any more: from here on Ctrl-C ends the launcher as it does any program.
  block.restore();
  printFailure(result, first, attempt);
  // A reader that has gone, as `head` does, wants no word about it.
  if (out.broken() && out.error() != EPIPE)
    say(fmt::format("cannot write to standard output: {}", std::strerror(out.error())));
  bool written = writeReports(attempt);
  out.drain();
  err.drain();
  int code = exitCode(result, first);
  return code == 0 && !written ? static_cast<int>(ExitLauncher) : code;
}

void Job::printNotes() {
  if (!plan.note.empty())
    say(plan.note);
  int ranks = plan.outer ? plan.outer->who.localWorldSize : plan.localRanks;
  if (plan.localRanks > 1 && plan.environment.emplace("OMP_NUM_THREADS", "1").second)
    say("each rank gets one OpenMP thread, as with torchrun; set OMP_NUM_THREADS for more");
  const int gpus = options().virtualGpus.value_or(0);
  if (gpus == 0)
    return;
  // The list may have been made for real GPUs, by a batch system for one.
  auto list = plan.environment.find("CUDA_VISIBLE_DEVICES");
  const int shown = list == plan.environment.end() ? gpus : visibleVirtualGpus(list->second, gpus);
  const int visible = shown > 0 ? shown : gpus; // a list that hides all does not reach the program
  if (visible < gpus)
    say(fmt::format("CUDA_VISIBLE_DEVICES='{}' shows {} of the {} virtual GPUs; unset it to have all",
                    list->second, visible, gpus));
  if (ranks > visible)
    say(fmt::format("{} ranks share {} virtual GPU{}: local ranks from {} on have none of their own", ranks,
                    visible, visible == 1 ? "" : "s", visible));
}

void Job::makeLogDirectory() {
  if (options().logDirectory.empty())
    return;
  std::error_code error;
  fs::create_directories(options().logDirectory, error);
  std::string name = options().runId.empty() ? "none" : options().runId;
  std::replace(name.begin(), name.end(), '/', '_');
  std::string pattern = fs::absolute(options().logDirectory) / (name + "_XXXXXX");
  if (!mkdtemp(pattern.data()))
    throw RunError(ExitLauncher, fmt::format("cannot make a directory in --log-dir {}: {}; name another",
                                             options().logDirectory, std::strerror(errno)));
  fs::permissions(pattern, fs::perms(0755), error);
  logRun = pattern;
  say("logs are in " + logRun);
}

std::string Job::recordsOf(int attempt) const {
  return plan.scratch.empty() ? "" : fmt::format("{}/attempt_{}", plan.scratch, attempt);
}

std::string Job::logFolder(int attempt, int rank) const {
  return logRun.empty() ? "" : fmt::format("{}/attempt_{}/{}", logRun, attempt, rank);
}

RankIdentity Job::identity(int localRank) const {
  if (plan.outer)
    return plan.outer->who;
  RankIdentity who;
  who.localRank = localRank;
  who.localWorldSize = plan.localRanks;
  who.nodeRank = options().nodeRank.value_or(0);
  who.nodes = options().nodes;
  who.rank = who.nodeRank * plan.localRanks + localRank;
  who.worldSize = who.nodes * plan.localRanks;
  return who;
}

Rendezvous Job::rendezvous(int attempt, std::optional<PortReservation> &reservation) const {
  if (plan.outer)
    return plan.outer->where;
  Rendezvous where;
  if (!options().masterAddress.empty())
    where.address = options().masterAddress;
  where.port = options().masterPort.value_or(0);
  if (where.port == 0) {
    reservation.emplace();
    where.port = reservation->port();
  }
  where.runId = options().runId.empty() ? "none" : options().runId;
  where.role = options().role;
  where.restartCount = attempt;
  where.maxRestarts = options().maxRestarts;
  return where;
}

RankPlan Job::rankPlan(const RankIdentity &who, const Rendezvous &where, int attempt) const {
  bool single = plan.localRanks == 1;
  Environment environment = plan.environment;
  if (plan.outer && plan.outer->launcher == kTorchrun)
    completeRankVariables(environment, who, where);
  else if (!plan.alone)
    setRankVariables(environment, who, where);
  if (!plan.preload.empty())
    setVirtualGpuVariables(environment, options(), plan.preload, recordsOf(attempt));
  RankPlan rank;
  rank.rank = who.rank;
  rank.command.file = plan.program;
  rank.command.arguments = options().command;
  rank.command.environment = toStrings(environment);
  // A single rank has the terminal to itself: progress bars, debuggers and Ctrl-Z work.
  rank.command.captured = !single || !logRun.empty();
  rank.command.keepInput = single;
  bool onTerminal = isatty(STDIN_FILENO) || isatty(STDOUT_FILENO) || isatty(STDERR_FILENO);
  rank.command.ownGroup = !single || !onTerminal;
  if (!single)
    rank.prefix = fmt::format("[rank {}] ", who.rank);
  if (std::string folder = logFolder(attempt, who.rank); !folder.empty()) {
    fs::create_directories(folder);
    rank.outLog = folder + "/stdout.log";
    rank.errLog = folder + "/stderr.log";
  }
  return rank;
}

AttemptResult Job::runAttempt(int attempt) {
  std::optional<PortReservation> reservation;
  Rendezvous where = rendezvous(attempt, reservation);
  if (!plan.scratch.empty())
    fs::create_directories(recordsOf(attempt));
  std::vector<RankPlan> ranks;
  ranks.reserve(static_cast<std::size_t>(plan.localRanks));
  for (int localRank = 0; localRank < plan.localRanks; ++localRank)
    ranks.push_back(rankPlan(identity(localRank), where, attempt));
  const std::chrono::duration<double> killAfter(options().killAfterSeconds);
  return Supervisor(out, err, signals, block,
                    std::chrono::duration_cast<std::chrono::milliseconds>(killAfter))
      .run(ranks, deadline);
}

// Ranks that failed within one look of ours: the one with a device error was first, because the others fail
// when they miss it; then one that was killed.
std::optional<RankFailure> Job::firstFailure(const AttemptResult &result, int attempt) const {
  if (result.failures.empty())
    return std::nullopt;
  std::vector<RankFailure> together;
  for (const RankFailure &failure : result.failures)
    if (failure.round == result.failures.front().round)
      together.push_back(failure);
  if (together.size() > 1 && !plan.scratch.empty())
    for (const ErrorRecord &error : readErrors(recordsOf(attempt)))
      for (const RankFailure &failure : together)
        if (failure.rank == error.source.rank)
          return failure;
  for (const RankFailure &failure : together)
    if (failure.exitCode() > ExitSignalBase)
      return failure;
  return together.front();
}

void Job::printFailure(const AttemptResult &result, const std::optional<RankFailure> &first, int attempt) {
  if (!first || result.outcome != Outcome::RankFailed)
    return;
  if (plan.localRanks > 1)
    say(fmt::format("rank {} failed first: {} (process {})", first->rank, first->describe(), first->pid));
  else if (WIFSIGNALED(first->status))
    say(fmt::format("the program was {}", first->describe()));
  else if (first->exitCode() > ExitSignalBase)
    say(fmt::format("the program ended with {}", first->describe()));
  if (!first->lastLines.empty() && plan.localRanks > 1) {
    say("its last lines on standard error:");
    for (const std::string &line : first->lastLines)
      err.buffer() += "    " + line + "\n";
  }
  if (!plan.scratch.empty())
    explainDeviceError(*first, attempt);
  std::string ended;
  for (int rank : result.endedRanks)
    ended += (ended.empty() ? "" : ", ") + std::to_string(rank);
  if (!ended.empty())
    say(fmt::format("ended with it: rank {}", ended));
  err.flush();
}

std::optional<ErrorRecord> Job::lastErrorOf(const RankFailure &failure, int attempt) const {
  const std::vector<ErrorRecord> errors = readErrors(recordsOf(attempt));
  std::optional<ErrorRecord> last;
  for (const ErrorRecord &error : errors)
    if (error.source.rank == failure.rank)
      last = error;
  if (last || errors.empty() || plan.localRanks > 1)
    return last;
  // The program is a launcher with ranks of its own, such as torchrun: that of the first error has ended
  // them.
  for (const ErrorRecord &error : errors)
    if (error.source.pid == errors.front().source.pid)
      last = error;
  return last;
}

void Job::explainDeviceError(const RankFailure &failure, int attempt) {
  const std::optional<ErrorRecord> last = lastErrorOf(failure, attempt);
  if (!last)
    return;
  const int rank = last->source.rank;
  std::string other = otherEnd(*last, readUncaught(recordsOf(attempt)), failure.status);
  if (other.empty())
    say(fmt::format("the last device error of rank {}:", rank));
  else
    say(fmt::format("rank {} ended for another reason: {}\ndevice-run: before, it caught a device error and "
                    "went on:",
                    rank, other));
  err.buffer() += explainError(*last, resolver);
}

void Job::printMemory(int attempt) {
  if (!options().virtualGpus)
    return;
  const MemoryPeaks peaks = readMemoryPeaks(recordsOf(attempt));
  if (options().gpuMemory && !peaks.empty()) {
    say("memory of the virtual GPUs:");
    err.buffer() += describeMemory(peaks, *options().gpuMemory);
  }
  const std::string foreign = describeForeignMemory(peaks, identity(0).rank, resolver);
  if (!foreign.empty()) {
    say("memory on devices of other ranks:");
    err.buffer() += foreign;
  }
}

RunRecords Job::runRecords(int lastAttempt) const {
  RunRecords run;
  const auto append = [](auto &to, auto more) {
    to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  for (int attempt = 0; attempt <= lastAttempt; ++attempt) {
    append(run.errors, readErrors(recordsOf(attempt)));
    append(run.uncaught, readUncaught(recordsOf(attempt)));
    append(run.reached, readReached(recordsOf(attempt)));
  }
  run.isIsolated = options().isolate;
  run.sources = sourcesOf(run.reached);
  return run;
}

/// Those of the program and of its libraries, also of the ones that it has opened itself.
std::optional<std::vector<std::string>> Job::sourcesOf(const std::vector<ReachedFrame> &reached) const {
  const std::optional<ElfFile> elf = readElf(plan.program);
  std::optional<std::vector<std::string>> sources = elf ? sourceFilesOf(plan.program) : std::nullopt;
  if (!sources)
    return std::nullopt; // a script, or without debug information
  std::set<std::string> modules;
  for (const Library &library : librariesOf(plan.program, *elf))
    if (!library.path.empty() && isProjectModule(library.path))
      modules.insert(library.path);
  for (const ReachedFrame &each : reached)
    if (const std::optional<Address> address = parseAddress(each.frame))
      if (isProjectModule(address->module))
        modules.insert(address->module);
  for (const std::string &module : modules)
    if (const auto more = sourceFilesOf(module))
      sources->insert(sources->end(), more->begin(), more->end());
  return sources;
}

bool Job::writeReports(int lastAttempt) {
  printMemory(lastAttempt);
  try {
    if (plan.findings) {
      const RunRecords run = runRecords(lastAttempt);
      judgeFindings(plan.findings->findings(), run, resolver);
      const std::string &target =
          options().findingsOut.empty() ? options().findingsFile : options().findingsOut;
      say("findings against this run:");
      err.buffer() += describeFindings(plan.findings->findings());
      if (run.errors.empty() && run.reached.empty())
        say("the program ran no LibTorch operator, so nothing could be reached");
      else if (resolver.missedLines() || resolver.missedTool())
        say(resolver.missedTool() ? "no addr2line is installed (binutils or LLVM), so lines are missing"
                                  : "parts of the program have no debug information; compile with -g");
      plan.findings->write(target);
      say("written to " + target);
    }
    if (!options().traceFile.empty()) {
      TraceSummary summary = mergeTrace(recordsOf(lastAttempt), options().traceFile, resolver);
      if (options().gpuMemory)
        summary.peaks.clear(); // printed already
      say(fmt::format("{} operators; moved between devices:", summary.operators));
      err.buffer() += describeTraffic(summary);
      say(fmt::format("trace written to {}; open it in https://ui.perfetto.dev or chrome://tracing",
                      options().traceFile));
    }
  } catch (const RunError &error) {
    say(error.what());
    return false;
  }
  return true;
}

int Job::exitCode(const AttemptResult &result, const std::optional<RankFailure> &first) const {
  switch (result.outcome) {
  case Outcome::Success:
    return 0;
  case Outcome::TimedOut:
    return ExitTimeout;
  case Outcome::Interrupted:
    return ExitSignalBase + result.signal;
  case Outcome::OutputClosed:
    return ExitSignalBase + SIGPIPE;
  case Outcome::RankFailed:
    break;
  }
  return first ? first->exitCode() : static_cast<int>(ExitLauncher);
}

} // namespace

int runJob(JobPlan &plan, const SignalBlock &signals) { return Job(plan, signals).run(); }

} // namespace devicerun
