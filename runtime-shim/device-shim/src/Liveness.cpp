#include "Liveness.h"

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
const char *const kFailureKey = "failure", *const kToldKey = "told";

std::string keyOf(const char *what, int rank) { return std::string(what) + "/" + std::to_string(rank); }

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
  throw PeerError("rank " + std::to_string(settings.rank) + ": " + what + "; this rank gave up in '" +
                  operation +
                  "'. Look at the output of the rank that failed first, then start the job again.");
}

void Liveness::throwIfFailed(const std::string &operation) {
  if (hasFailed())
    throwFailure(operation);
}

void Liveness::throwAfterBrokenConnection(const std::string &operation, const std::string &cause) {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait_for(lock, settings.timeout + 3 * kBeat, [this] { return !failure.empty(); });
  if (!failure.empty()) {
    lock.unlock();
    throwFailure(operation);
  }
  // No rank has failed. One that is done closes its connections, too. The store takes requests from any
  // thread, one at a time.
  std::string finished;
  try {
    for (int rank = 0; rank < settings.size; ++rank)
      if (rank != settings.rank && store->check({keyOf("left", rank)}))
        finished += (finished.empty() ? "rank " : ", rank ") + std::to_string(rank);
  } catch (const std::exception &) {
    // The store is gone, and with it what it knew.
  }
  failure =
      finished.empty() ? "a connection to another rank broke (" + cause + ")" : finished + " has finished";
  acknowledged = true;
  lock.unlock();
  changed.notify_all();
  if (finished.empty())
    throwFailure(operation);
  throw PeerError("rank " + std::to_string(settings.rank) + ": " + finished +
                  " has finished and left the job, " + "but this rank is in '" + operation +
                  "' and needs all ranks. Give every rank equally many " +
                  "batches, and let all call the same collective operations.");
}

void Liveness::throwTimeout(const std::string &operation, std::chrono::milliseconds after) {
  const std::string what = "rank " + std::to_string(settings.rank) + " waited " +
                           std::to_string(after.count() / 1000.0).substr(0, 6) +
                           " s for the other ranks in '" + operation +
                           "': all live, but not all of them take part";
  fail(what);
  throwFailure(operation);
}

// What this process found out itself, for everyone to read.
void Liveness::report(const std::string &what) {
  const std::vector<uint8_t> bytes(what.begin(), what.end());
  try {
    store->set(kFailureKey, bytes);
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
  std::fprintf(stderr, "device_shim: rank %d: %s\n", settings.rank, what.c_str());
  std::fflush(stderr);
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
  } catch (const std::exception &) {
    // Another rank ended the store; there is nobody left to tell.
  }
}

// One round. False when a rank has failed.
bool Liveness::beat() {
  try {
    store->add(keyOf("beats", settings.rank), 1);
    if (store->check({kFailureKey})) {
      const auto bytes = store->get(kFailureKey);
      fail(std::string(bytes.begin(), bytes.end()));
      store->add(kToldKey, 1);
      return false;
    }
    if (nextRank != settings.rank)
      watchNext();
  } catch (const std::exception &) {
    fail("the process that holds the job's store at " + settings.storeAddress +
         " is gone: rank 0, or the launcher on its machine");
  }
  return !hasFailed();
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
  report(gone ? who + " ended without leaving the job: it was killed or it crashed"
              : who + " gave no sign of life for " +
                    std::to_string(settings.timeout.count() / 1000.0).substr(0, 4) +
                    " s: it was killed or stopped, or its machine is unreachable");
}

bool Liveness::allLeft() {
  if (store->add("left", 0) >= settings.size || store->check({kFailureKey}))
    return true;
  // A rank that died now never leaves; beat() finds that out.
  return !beat();
}

// The store ends with the rank that holds it: the others shall read first what has failed. One is dead and
// never does, or it is this rank itself.
void Liveness::waitUntilTold() {
  if (!settings.holdsStore)
    return;
  const auto end = Clock::now() + kBeatsUntilTold * kBeat;
  try {
    while (store->check({kFailureKey}) && store->add(kToldKey, 0) < settings.size - 1 && Clock::now() < end)
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
