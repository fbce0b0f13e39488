#include "ForwardCalls.h"

#include <ATen/SequenceNumber.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace vcuda {
namespace {

// The last nodes of a thread: more than the operators of a training step, in at most 4 MiB.
constexpr size_t kRemembered = size_t(1) << 14;

struct Call {
  int64_t sequenceNumber;
  CallStack stack;
};
using Calls = std::deque<Call>; // by ascending number

class CallsOfThreads {
public:
  void add(uint64_t thread, int64_t sequenceNumber, const CallStack &stack) {
    std::lock_guard<std::mutex> lock(mutex_);
    Calls &calls = ofThread_[thread];
    calls.push_back({sequenceNumber, stack});
    if (calls.size() > kRemembered)
      calls.pop_front();
  }

  c10::optional<CallStack> find(uint64_t thread, int64_t sequenceNumber) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto known = ofThread_.find(thread);
    if (known == ofThread_.end())
      return c10::nullopt;
    const auto call =
        std::lower_bound(known->second.begin(), known->second.end(), sequenceNumber,
                         [](const Call &each, int64_t number) { return each.sequenceNumber < number; });
    bool found = call != known->second.end() && call->sequenceNumber == sequenceNumber;
    return found ? c10::optional<CallStack>(call->stack) : c10::nullopt;
  }

  // The graph of a thread may outlive it; all that have ended share what one running thread may have.
  void threadEnds(uint64_t thread) {
    std::lock_guard<std::mutex> lock(mutex_);
    ended_.push_back(thread);
    size_t total = 0;
    for (uint64_t each : ended_)
      total += ofThread_[each].size();
    for (; total > kRemembered; ended_.pop_front()) {
      total -= ofThread_[ended_.front()].size();
      ofThread_.erase(ended_.front());
    }
  }

private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, Calls> ofThread_;
  std::deque<uint64_t> ended_;
};

CallsOfThreads &calls() {
  // Leaked: operators also run while static objects are destroyed.
  static auto *all = new CallsOfThreads();
  return *all;
}

// Without a destructor: operators also run while thread-local objects are destroyed.
thread_local int64_t lastSeen = -1;
thread_local bool threadHasEnded = false;

struct ThreadEnd {
  uint64_t thread;
  ~ThreadEnd() {
    threadHasEnded = true;
    calls().threadEnds(thread);
  }
};

int64_t newestNode() { return static_cast<int64_t>(at::sequence_number::peek()) - 1; }

} // namespace

bool newNodes() { return newestNode() > lastSeen && !threadHasEnded; }

void noteNewNodes(uint64_t thread, const CallStack &stack) {
  thread_local ThreadEnd atEnd{thread};
  const int64_t newest = newestNode();
  // An operator makes one or two; others were made where they are not observed.
  for (int64_t node = std::max(lastSeen, newest - 64) + 1; node <= newest; ++node)
    calls().add(thread, node, stack);
  lastSeen = newest;
}

void skipNewNodes() { lastSeen = newestNode(); }

c10::optional<CallStack> forwardCall(uint64_t thread, int64_t sequenceNumber) {
  if (sequenceNumber < 0)
    return c10::nullopt;
  return calls().find(thread, sequenceNumber);
}

} // namespace vcuda
