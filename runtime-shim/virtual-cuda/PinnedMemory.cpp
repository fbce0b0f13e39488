#include "PinnedMemory.h"

#include "Compat.h"
#include "Origins.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <map>
#include <mutex>

namespace vcuda {
namespace {

constexpr size_t kAlignment = 64;

struct Range {
  size_t bytes;
  bool registered; // memory of the program, not of this allocator
};

// Leaked: tensors may outlive static destruction.
struct Registry {
  std::mutex mutex;
  std::map<uintptr_t, Range> ranges;
};

Registry &registry() {
  static auto *instance = new Registry();
  return *instance;
}

void freePinned(void *data) {
  if (!data)
    return;
  {
    Registry &pinned = registry();
    std::lock_guard<std::mutex> lock(pinned.mutex);
    pinned.ranges.erase(reinterpret_cast<uintptr_t>(data));
  }
  forgetOrigin(data);
  std::free(data);
}

class PinnedAllocator final : public AllocatorBase {
public:
  c10::DeleterFnPtr raw_deleter() const override { return &freePinned; }

private:
  c10::DataPtr make(size_t bytes) const override {
    void *data = nullptr;
    if (bytes) {
      TORCH_CHECK(posix_memalign(&data, kAlignment, bytes) == 0, "no memory for ", bytes, " pinned bytes");
      noteOrigin(data);
      Registry &pinned = registry();
      std::lock_guard<std::mutex> lock(pinned.mutex);
      pinned.ranges.emplace(reinterpret_cast<uintptr_t>(data), Range{bytes, false});
    }
    return {data, data, &freePinned, c10::Device(c10::kCPU)};
  }
};

} // namespace

c10::Allocator *pinnedAllocator() {
  static PinnedAllocator allocator;
  return &allocator;
}

bool isPinned(const void *pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  Registry &pinned = registry();
  std::lock_guard<std::mutex> lock(pinned.mutex);
  auto after = pinned.ranges.upper_bound(address);
  if (after == pinned.ranges.begin())
    return false;
  auto range = std::prev(after);
  return address - range->first < range->second.bytes;
}

bool registerPinned(void *data, size_t bytes) {
  auto address = reinterpret_cast<uintptr_t>(data);
  Registry &pinned = registry();
  std::lock_guard<std::mutex> lock(pinned.mutex);
  auto after = pinned.ranges.lower_bound(address);
  if (after != pinned.ranges.end() && after->first - address < bytes)
    return false;
  if (after != pinned.ranges.begin()) {
    auto before = std::prev(after);
    if (address - before->first < before->second.bytes)
      return false;
  }
  pinned.ranges.emplace(address, Range{bytes, true});
  return true;
}

bool unregisterPinned(void *data) {
  Registry &pinned = registry();
  std::lock_guard<std::mutex> lock(pinned.mutex);
  auto range = pinned.ranges.find(reinterpret_cast<uintptr_t>(data));
  if (range == pinned.ranges.end() || !range->second.registered)
    return false;
  pinned.ranges.erase(range);
  return true;
}

} // namespace vcuda
