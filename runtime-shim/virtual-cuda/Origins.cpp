#include "Origins.h"

#include "Records.h"
#include "RunningOps.h"
#include "Settings.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>

namespace vcuda {
namespace {

struct Shard {
  std::mutex mutex;
  std::unordered_map<const void *, Origin> origins;
};

Shard &shardOf(const void *key) {
  // Leaked: tensors may outlive static destruction.
  static auto *shards = new std::array<Shard, 16>();
  return (*shards)[(reinterpret_cast<uintptr_t>(key) >> 6) % shards->size()];
}

// copy_ into a tensor of the program changes values; inside of to() it makes the tensor.
bool isMoving() {
  for (RunningOp *op = innermostOp(); op; op = op->outer)
    if (op->name == "aten::_to_copy" || op->name == "aten::to")
      return true;
  return false;
}

void keep(const void *key, Origin origin) {
  Shard &shard = shardOf(key);
  std::lock_guard<std::mutex> lock(shard.mutex);
  shard.origins[key] = std::move(origin);
}

// Calls change(origin) for the origin of a tensor's bytes, where it is known.
template <typename Change> void changeOrigin(const at::Tensor &tensor, Change change) {
  if (!tensor.has_storage())
    return;
  const void *key = originKey(*tensor.storage().unsafeGetStorageImpl());
  Shard &shard = shardOf(key);
  std::lock_guard<std::mutex> lock(shard.mutex);
  auto known = shard.origins.find(key);
  if (known != shard.origins.end())
    change(known->second);
}

bool sameStack(const CallStack &a, const CallStack &b) {
  return a.count == b.count && std::equal(a.frames.begin(), a.frames.begin() + a.count, b.frames.begin());
}

} // namespace

bool originsAreKept() {
  static const bool kept = errorFile() || isolated();
  return kept;
}

void noteOrigin(const void *key) {
  RunningOp *op = outermostOp();
  noteOrigin(key, op ? op->name : "");
}

void noteOrigin(const void *key, const std::string &op) {
  if (originsAreKept() && key)
    keep(key, {false, op, callStackOfOp(), {}});
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

void forgetOrigin(const void *key) {
  if (!originsAreKept())
    return;
  Shard &shard = shardOf(key);
  std::lock_guard<std::mutex> lock(shard.mutex);
  shard.origins.erase(key);
}

c10::optional<Origin> originOf(const void *key) {
  if (!originsAreKept())
    return c10::nullopt;
  Shard &shard = shardOf(key);
  std::lock_guard<std::mutex> lock(shard.mutex);
  auto known = shard.origins.find(key);
  return known == shard.origins.end() ? c10::optional<Origin>() : known->second;
}

} // namespace vcuda
