#include "ForwardCalls.h"

#include <mutex>
#include <unordered_map>
#include <vector>

namespace vcuda {
namespace {

// The last nodes of a thread, in a ring: more than the operators of a training step, in 4 MiB.
constexpr size_t kRemembered = size_t(1) << 14;

struct Call {
  int64_t sequenceNumber = -1;
  CallStack stack{};
};

struct Calls {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::vector<Call>> ofThread;
};

Calls &calls() {
  // Leaked: operators also run while static objects are destroyed.
  static auto *all = new Calls();
  return *all;
}

} // namespace

void noteForwardCall(uint64_t thread, int64_t sequenceNumber, const CallStack &stack) {
  if (sequenceNumber < 0)
    return;
  std::lock_guard<std::mutex> lock(calls().mutex);
  std::vector<Call> &ring = calls().ofThread[thread];
  if (ring.empty())
    ring.resize(kRemembered);
  ring[static_cast<size_t>(sequenceNumber) % kRemembered] = Call{sequenceNumber, stack};
}

c10::optional<CallStack> forwardCall(uint64_t thread, int64_t sequenceNumber) {
  if (sequenceNumber < 0)
    return c10::nullopt;
  std::lock_guard<std::mutex> lock(calls().mutex);
  const auto found = calls().ofThread.find(thread);
  if (found == calls().ofThread.end())
    return c10::nullopt;
  const Call &call = found->second[static_cast<size_t>(sequenceNumber) % kRemembered];
  return call.sequenceNumber == sequenceNumber ? c10::optional<CallStack>(call.stack) : c10::nullopt;
}

} // namespace vcuda
