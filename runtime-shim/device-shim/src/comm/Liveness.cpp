#include "comm/Liveness.h"

#include "comm/StoreConnection.h"

#include <device_shim/Error.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace device_shim::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kBeat = std::chrono::milliseconds(300);
constexpr int kBeatsUntilTold = 10; // a rank on a busy machine misses some
constexpr auto kLongUnderWay = std::chrono::seconds(1);
const char *const kFailureKey = "failure", *const kToldKey = "told", *const kLeavingKey = "leaving",
                  *const kWaitsKey = "waits", *const kExitsKey = "exits";
const char *const kUsualAdvice =
    "Look at the output of the rank that failed first, then start the job again.";
const char *const kUnevenAdvice =
    "Look whether it caught an error and went on without the others; else give every rank equally many "
    "batches, and let all call the same collective operations.";
const char *const kTimeoutAdvice =
    "Let all ranks call the same collective operations, and give each equally many batches; where one is "
    "busy for longer, set a longer collective_timeout.";

const char *const kExitAdvice = "Let its communicator and wrappers end before the process does: return from "
                                "main() instead of calling exit().";
const char *const kDifferenceAdvice =
    "Let all ranks call the same operations in the same order; look for what one of them does alone, such as "
    "an evaluation or a batch that it skips.";

std::string keyOf(const char *what, int rank) { return std::string(what) + "/" + std::to_string(rank); }

// What happened, and in a second line what to do about it, where that is not the usual.
std::string withAdvice(const std::string &what, const char *advice) { return what + "\n" + advice; }

std::string sentenceOf(const std::string &failure) { return failure.substr(0, failure.find('\n')); }

std::string adviceOf(const std::string &failure) {
  const auto line = failure.find('\n');
  return line == std::string::npos ? kUsualAdvice : failure.substr(line + 1);
}

std::string finishedWithout(const std::string &ranks, int waiting, const std::string &operation) {
  return withAdvice(ranks + " has finished and left the job, which rank " + std::to_string(waiting) +
                        " still needs in '" + operation + "'",
                    kUnevenAdvice);
}

std::string linkTarget(const char *path) {
  char buffer[128];
  const auto length = readlink(path, buffer, sizeof buffer);
  return length > 0 ? std::string(buffer, static_cast<size_t>(length)) : std::string("?");
}

// Whether a process is there and no zombie, which its parent may leave for long.
bool processRuns(long pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(stat, line))
    return false;
  const auto afterName = line.rfind(')');
  return afterName == std::string::npos || afterName + 2 >= line.size() ||
         (line[afterName + 2] != 'Z' && line[afterName + 2] != 'X');
}

} // namespace

ProcessIdentity ProcessIdentity::own() {
  ProcessIdentity self;
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  self.host = host;
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string bootId;
  std::getline(boot, bootId);
  self.space = bootId + "+" + linkTarget("/proc/self/ns/pid");
  self.pid = getpid();
  return self;
}

std::string ProcessIdentity::text() const { return host + " " + space + " " + std::to_string(pid); }

ProcessIdentity ProcessIdentity::fromText(const std::string &text) {
  ProcessIdentity found;
  std::istringstream(text) >> found.host >> found.space >> found.pid;
  return found;
}

std::string ProcessIdentity::readable() const { return "process " + std::to_string(pid) + " on " + host; }

Liveness::Liveness(c10::intrusive_ptr<c10d::Store> ownStore, Settings ownSettings)
    : store(std::move(ownStore)), settings(std::move(ownSettings)) {
  setNext((settings.rank + 1) % settings.size);
  thread = std::thread([this] { run(); });
}

Liveness::~Liveness() { leave(/*failed=*/false); }

bool Liveness::hasFailed() const {
  std::lock_guard<std::mutex> lock(mutex);
  return !failure.empty();
}

void Liveness::throwFailure(const std::string &operation) {
  std::string what;
  {
    std::lock_guard<std::mutex> lock(mutex);
    acknowledged = true;
    what = failure;
  }
  changed.notify_all();
  throw PeerError("rank " + std::to_string(settings.rank) + ": " + sentenceOf(what) +
                  "; this rank gave up in '" + operation + "'. " + adviceOf(what));
}

void Liveness::throwIfFailed(const std::string &operation) {
  if (hasFailed())
    throwFailure(operation);
}

// No rank has failed where one is done: it closes its connections, too.
void Liveness::reportBrokenConnection(const std::string &operation, const std::string &cause) {
  const auto end = Clock::now() + settings.timeout + 3 * kBeat;
  std::string finished;
  while (finished.empty() && Clock::now() < end) {
    std::unique_lock<std::mutex> lock(mutex);
    if (changed.wait_for(lock, kBeat, [this] { return !failure.empty(); }))
      return;
    lock.unlock();
    finished = finishedRanks();
  }
  report(finished.empty() ? "a connection of rank " + std::to_string(settings.rank) +
                                " to another rank broke (" + cause + ")"
                          : finishedWithout(finished, settings.rank, operation),
         /*rankDied=*/false);
}

// "rank 1, rank 3"; "" for none.
std::string Liveness::finishedRanks() {
  std::string finished;
  try {
    for (int rank = 0; rank < settings.size; ++rank)
      if (rank != settings.rank && store->check({keyOf("left", rank)}))
        finished += (finished.empty() ? "rank " : ", rank ") + std::to_string(rank);
  } catch (const std::exception &) {
    // The store is gone, and with it what it knew.
  }
  return finished;
}

void Liveness::processExits() {
  try {
    store->set(keyOf(kExitsKey, settings.rank), std::vector<uint8_t>{1});
  } catch (const std::exception &) {
    // Another rank ended the store, and knows more.
  }
}

void Liveness::reportTimeout(const std::string &operation, std::chrono::milliseconds after) {
  report(withAdvice("rank " + std::to_string(settings.rank) + " waited " + secondsText(after) +
                        " for the other ranks in '" + operation +
                        "': all live, but not all of them take part" + operationsOfAll(),
                    kTimeoutAdvice),
         /*rankDied=*/false);
}

void Liveness::reportDifference(const std::string &what) {
  report(withAdvice(what, kDifferenceAdvice), /*rankDied=*/false);
}

// "; operations begun: 20 by rank 0, 21 by rank 1", where some rank began fewer than this one.
std::string Liveness::operationsOfAll() {
  constexpr int kShown = 8;
  std::string behind;
  int count = 0;
  try {
    for (int rank = 0; rank < settings.size; ++rank) {
      const auto theirs = rank == settings.rank ? begun.load() : store->add(keyOf("begun", rank), 0);
      if (theirs < begun && ++count <= kShown)
        behind += std::to_string(theirs) + " by rank " + std::to_string(rank) + ", ";
    }
  } catch (const std::exception &) {
    return "";
  }
  if (count == 0)
    return "";
  return "; operations begun: " + behind + (count > kShown ? "fewer by others, too, " : "") +
         std::to_string(begun) + " by rank " + std::to_string(settings.rank);
}

// What this process found out itself, for everyone to read. With `rankDied` one rank less will read it.
void Liveness::report(const std::string &what, bool rankDied) {
  if (hasFailed())
    return;
  const std::vector<uint8_t> bytes(what.begin(), what.end());
  try {
    store->set(kFailureKey, bytes);
    if (rankDied)
      store->add(kToldKey, 1);
  } catch (const std::exception &) {
    // The store went with the rank that held it; the others notice as this one did.
  }
  fail(what);
}

void Liveness::fail(const std::string &what) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!failure.empty())
      return;
    failure = what;
  }
  changed.notify_all();
  std::fprintf(stderr, "device_shim: rank %d: %s\n", settings.rank, sentenceOf(what).c_str());
  std::fflush(stderr);
}

void Liveness::announceLeaving() {
  const auto count = std::to_string(begun);
  store->set(keyOf(kLeavingKey, settings.rank), std::vector<uint8_t>(count.begin(), count.end()));
  store->add(kLeavingKey, 1);
}

void Liveness::run() {
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait_for(lock, kBeat, [this] { return stopping; });
      if (stopping || !failure.empty())
        break;
    }
    if (!beat())
      break;
  }
  std::unique_lock<std::mutex> lock(mutex);
  const bool knowsOfFailure = !failure.empty(), failed = stoppingAsFailed;
  lock.unlock();
  if (knowsOfFailure) {
    waitUntilTold();
    endProcessAfterGrace();
    return;
  }
  try {
    if (failed) {
      const std::string what = "rank " + std::to_string(settings.rank) + " ended with an error (" +
                               ProcessIdentity::own().readable() + ")";
      store->set(kFailureKey, std::vector<uint8_t>(what.begin(), what.end()));
      waitUntilTold();
      return;
    }
    store->add("left", 1);
    store->set(keyOf("left", settings.rank), std::vector<uint8_t>{1});
    const auto end = Clock::now() + settings.leaveTimeout;
    while (settings.holdsStore && Clock::now() < end && !allLeft())
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (hasFailed())
      waitUntilTold();
  } catch (const std::exception &) {
    // Another rank ended the store; no rank is left to be informed.
  }
}

// One round. False when a rank has failed.
bool Liveness::beat() {
  try {
    store->add(keyOf("beats", settings.rank), 1);
    if (const int64_t count = begun; count != begunTold) {
      store->add(keyOf("begun", settings.rank), count - begunTold);
      begunTold = count;
    }
    if (store->check({kFailureKey})) {
      const auto bytes = store->get(kFailureKey);
      fail(std::string(bytes.begin(), bytes.end()));
      store->add(kToldKey, 1);
      return false;
    }
    if (nextRank != settings.rank)
      watchNext();
    watchUnderWay();
    watchStandstill();
  } catch (const std::exception &) {
    fail("the process that holds the job's store at " + settings.storeAddress +
         " is gone: rank 0, or the launcher on its machine");
  }
  return !hasFailed();
}

// Each rank looks at the next one: where not all wait in the same operation, two neighbours differ.
void Liveness::watchStandstill() {
  const auto own = standstill.look();
  if (own || toldOfWait) {
    const auto text = own ? own->text() : std::string();
    store->set(keyOf(kWaitsKey, settings.rank), std::vector<uint8_t>(text.begin(), text.end()));
  }
  toldOfWait = own.has_value();
  const auto key = keyOf(kWaitsKey, nextRank);
  if (!own || nextRank == settings.rank || !store->check({key}))
    return;
  const auto bytes = store->get(key);
  const auto theirs = Standstill::Record::fromText({bytes.begin(), bytes.end()});
  if (theirs && standstill.neverEnds(*own, nextRank, *theirs))
    reportDifference("rank " + std::to_string(settings.rank) + " waits in '" + own->place.what +
                     "', and rank " + std::to_string(nextRank) + " in '" + theirs->place.what +
                     "' of another communicator, so that neither comes to that of the other");
}

// The host does not wait for what is under way on a device, so only this thread notices when it never
// ends. c10d's own watchdog would end the process without a word of why.
void Liveness::watchUnderWay() {
  const auto now = UnderWay::Clock::now();
  const auto range = underWay.look();
  if (!range || now - range->oldest.since < kLongUnderWay)
    return;
  if (store->add(kLeavingKey, 0) > 0) {
    std::string finished;
    for (int rank = 0; rank < settings.size; ++rank) {
      if (rank == settings.rank || !store->check({keyOf(kLeavingKey, rank)}))
        continue;
      const auto bytes = store->get(keyOf(kLeavingKey, rank));
      if (std::stoll(std::string(bytes.begin(), bytes.end())) < range->newest.number)
        finished += (finished.empty() ? "rank " : ", rank ") + std::to_string(rank);
    }
    if (!finished.empty())
      return report(finishedWithout(finished, settings.rank, range->newest.operation), /*rankDied=*/false);
  }
  if (settings.collectiveTimeout.count() > 0 && now - range->oldest.since > settings.collectiveTimeout)
    report(withAdvice("rank " + std::to_string(settings.rank) + " waited " +
                          secondsText(settings.collectiveTimeout) + " for the device to end '" +
                          range->oldest.operation +
                          "': all ranks live, but not all of them take part, or one's device hangs" +
                          operationsOfAll(),
                      kTimeoutAdvice),
           /*rankDied=*/false);
}

void Liveness::setNext(int rank) {
  nextRank = rank;
  nextBeats = -1;
  nextSeen = Clock::now();
  if (rank == settings.rank)
    return;
  const auto bytes = store->get(identityKey(rank));
  next = ProcessIdentity::fromText(std::string(bytes.begin(), bytes.end()));
}

void Liveness::watchNext() {
  const auto now = Clock::now();
  const auto beats = store->add(keyOf("beats", nextRank), 0);
  if (beats != nextBeats) {
    nextBeats = beats;
    nextSeen = now;
  }
  const bool sameMachine = next.space == ProcessIdentity::own().space;
  const bool gone = sameMachine && !processRuns(next.pid);
  if (!gone && now - nextSeen < settings.timeout)
    return;
  if (store->check({keyOf("left", nextRank)})) {
    setNext((nextRank + 1) % settings.size);
    return;
  }
  const std::string who = "rank " + std::to_string(nextRank) + " (" + next.readable() + ")";
  if (gone && store->check({keyOf(kExitsKey, nextRank)}))
    return report(withAdvice(who + " ended by exit() before it left the job", kExitAdvice),
                  /*rankDied=*/true);
  report(gone ? who + " ended without leaving the job: it was killed or it crashed"
              : who + " gave no sign of life for " + secondsText(settings.timeout) +
                    ": it was killed or stopped, or its machine is unreachable",
         /*rankDied=*/true);
}

bool Liveness::allLeft() {
  if (store->add("left", 0) >= settings.size)
    return true;
  // A rank that died now never leaves; beat() finds that out.
  return !beat();
}

// The store ends with the rank that holds it: the others shall read first what has failed. One is dead and
// never does, or it is this rank itself; one that has left does not, either.
void Liveness::waitUntilTold() {
  if (!settings.holdsStore)
    return;
  const auto end = Clock::now() + kBeatsUntilTold * kBeat;
  try {
    while (store->check({kFailureKey}) &&
           store->add(kToldKey, 0) + store->add("left", 0) < settings.size - 1 && Clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } catch (const std::exception &) {
    // There is no store to wait for.
  }
}

void Liveness::leave(bool failed) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
    stoppingAsFailed = stoppingAsFailed || failed;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

// The program's own threads get the chance to throw; a rank stuck in a kernel cannot, and is ended.
void Liveness::endProcessAfterGrace() {
  std::unique_lock<std::mutex> lock(mutex);
  if (changed.wait_for(lock, settings.grace, [this] { return acknowledged || stopping; }))
    return;
  std::fprintf(stderr, "device_shim: rank %d: ending this process, %.1f s after that\n", settings.rank,
               static_cast<double>(settings.grace.count()) / 1000);
  std::fflush(stderr);
  _exit(1);
}

} // namespace device_shim::detail
