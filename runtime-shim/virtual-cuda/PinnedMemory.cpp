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

// Leaked: tensors may outlive static destruction.
struct Registry {
  std::mutex mutex;
  std::map<uintptr_t, size_t> ranges;
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
      pinned.ranges.emplace(reinterpret_cast<uintptr_t>(data), bytes);
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
  return address - range->first < range->second;
}

} // namespace vcuda
