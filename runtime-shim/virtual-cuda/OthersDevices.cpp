#include "OthersDevices.h"

#include "Records.h"
#include "Settings.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

namespace vcuda {
namespace {

int numberIn(const char *name, int otherwise) {
  const char *text = std::getenv(name);
  return text && *text ? std::atoi(text) : otherwise;
}

struct Largest {
  std::atomic<size_t> bytes{0};
  CallStack stack{};
};

struct All {
  std::mutex mutex;
  std::array<Largest, kMaxDevices> devices;
};

All &all() {
  // Leaked: tensors are made while static objects are destroyed.
  static auto *instance = new All();
  return *instance;
}

} // namespace

bool isOneOfManyRanks() {
  // Fewer devices than ranks: CUDA_VISIBLE_DEVICES gives each its own, under the same number.
  static const bool many = [] {
    const int ranks = numberIn("LOCAL_WORLD_SIZE", 1);
    return ranks > 1 && deviceCount() >= ranks;
  }();
  return many;
}

void noteAllocation(int device, size_t bytes) {
  static const int own = isOneOfManyRanks() && errorFile() ? numberIn("LOCAL_RANK", 0) : -1;
  if (own < 0 || device == own)
    return;
  Largest &largest = all().devices[static_cast<size_t>(device)];
  if (bytes <= largest.bytes)
    return;
  const CallStack stack = CallStack::ofCaller();
  std::lock_guard<std::mutex> lock(all().mutex);
  largest.bytes = bytes;
  largest.stack = stack;
}

c10::optional<LargestAllocation> largestAllocation(int device) {
  std::lock_guard<std::mutex> lock(all().mutex);
  const Largest &largest = all().devices[static_cast<size_t>(device)];
  if (largest.bytes == 0)
    return c10::nullopt;
  return LargestAllocation{largest.bytes, largest.stack};
}

} // namespace vcuda
