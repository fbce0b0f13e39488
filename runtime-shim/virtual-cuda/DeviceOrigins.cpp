// Origins by memory: the allocators of the virtual devices and of the host say what is made and freed.
#include "Origins.h"

#include "Blocks.h"
#include "Compat.h"
#include "HostMemory.h"

#include <deque>
#include <mutex>

namespace vcuda {
namespace {

// LibTorch does not say when it stops using memory of the program; only the last addresses are kept.
class ForeignMemory {
public:
  void add(const void *data) {
    std::lock_guard<std::mutex> lock(mutex_);
    addresses_.push_back(data);
    if (addresses_.size() <= kMost)
      return;
    if (auto origin = originOf(addresses_.front()); origin && origin->op == kFromBlob)
      forgetOrigin(addresses_.front());
    addresses_.pop_front();
  }

private:
  static constexpr size_t kMost = 4096;
  std::mutex mutex_;
  std::deque<const void *> addresses_;
};

} // namespace

const void *originKey(c10::StorageImpl &storage) { return hostAddress(dataOf(storage)); }

void noteForeignMemory(const c10::Storage &storage) {
  const void *data = dataOf(*storage.unsafeGetStorageImpl());
  // Memory of a device has an origin already.
  if (!originsAreKept() || !data || deviceOfPointer(data) >= 0)
    return;
  const auto known = originOf(data);
  if (known && known->op != kFromBlob)
    return; // memory of a tensor that lives
  noteOrigin(data, kFromBlob);
  static auto *foreign = new ForeignMemory();
  if (!known)
    foreign->add(data);
}

} // namespace vcuda
