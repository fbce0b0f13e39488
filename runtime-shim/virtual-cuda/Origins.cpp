#include "Origins.h"

#include "Blocks.h"
#include "Compat.h"
#include "HostMemory.h"
#include "Records.h"
#include "RunningOps.h"
#include "Settings.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace vcuda {
namespace {

constexpr const char *kFromBlob = "torch::from_blob";

struct Shard {
  std::mutex mutex;
  std::unordered_map<const void *, Origin> origins;
};

Shard &shardOf(const void *data) {
  // Leaked: tensors may outlive static destruction.
  static auto *shards = new std::array<Shard, 16>();
  return (*shards)[(reinterpret_cast<uintptr_t>(data) >> 6) % shards->size()];
}

// copy_ into a tensor of the program changes values; inside of to() it makes the tensor.
bool isMoving() {
  for (RunningOp *op = innermostOp(); op; op = op->outer)
    if (op->name == "aten::_to_copy" || op->name == "aten::to")
      return true;
  return false;
}

void keep(const void *data, Origin origin) {
  Shard &shard = shardOf(data);
  std::lock_guard<std::mutex> lock(shard.mutex);
  shard.origins[data] = std::move(origin);
}

// Calls change(origin) for the origin of a tensor's bytes, where it is known.
template <typename Change> void changeOrigin(const at::Tensor &tensor, Change change) {
  if (!tensor.has_storage())
    return;
  const void *data = hostAddress(dataOf(*tensor.storage().unsafeGetStorageImpl()));
  Shard &shard = shardOf(data);
  std::lock_guard<std::mutex> lock(shard.mutex);
  auto known = shard.origins.find(data);
  if (known != shard.origins.end())
    change(known->second);
}

bool sameStack(const CallStack &a, const CallStack &b) {
  return a.count == b.count && std::equal(a.frames.begin(), a.frames.begin() + a.count, b.frames.begin());
}

// LibTorch does not say when it stops using memory of the program; only the last addresses are kept.
class ForeignMemory {
public:
  void add(void *data) {
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
  std::deque<void *> addresses_;
};

} // namespace

bool originsAreKept() {
  static const bool kept = errorFile() || isolated();
  return kept;
}

void noteOrigin(void *data) {
  if (!originsAreKept() || !data)
    return;
  RunningOp *op = outermostOp();
  keep(data, {false, op ? op->name : "", callStackOfOp(), {}});
}

void noteForeignMemory(void *data) {
  // Memory of a device has an origin already.
  if (!originsAreKept() || !data || deviceOfPointer(data) >= 0)
    return;
  const auto known = originOf(data);
  if (known && known->op != kFromBlob)
    return; // memory of a tensor that lives
  keep(data, {false, kFromBlob, callStackOfOp(), {}});
  static auto *foreign = new ForeignMemory();
  if (!known)
    foreign->add(data);
}

void noteCopy(const at::Tensor &target, const at::Tensor &source) {
  if (!originsAreKept() || !isMoving())
    return;
  changeOrigin(target, [](Origin &origin) { origin.moved = true; });
  constexpr size_t kMostPlaces = 8;
  const CallStack place = callStackOfOp();
  changeOrigin(source, [&](Origin &origin) {
    auto known = std::find_if(origin.copied.begin(), origin.copied.end(),
                              [&](const CallStack &other) { return sameStack(other, place); });
    if (known == origin.copied.end() && origin.copied.size() < kMostPlaces)
      origin.copied.push_back(place);
  });
}

void forgetOrigin(void *data) {
  if (!originsAreKept())
    return;
  Shard &shard = shardOf(data);
  std::lock_guard<std::mutex> lock(shard.mutex);
  shard.origins.erase(data);
}

c10::optional<Origin> originOf(const void *data) {
  if (!originsAreKept())
    return c10::nullopt;
  Shard &shard = shardOf(data);
  std::lock_guard<std::mutex> lock(shard.mutex);
  auto known = shard.origins.find(data);
  return known == shard.origins.end() ? c10::optional<Origin>() : known->second;
}

} // namespace vcuda
