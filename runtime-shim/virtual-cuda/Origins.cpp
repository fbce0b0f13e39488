#include "Origins.h"

#include "Compat.h"
#include "HostMemory.h"
#include "Records.h"
#include "RunningOps.h"
#include "Settings.h"

#include <array>
#include <mutex>
#include <unordered_map>

namespace vcuda {
namespace {

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

} // namespace

bool originsAreKept() {
  static const bool kept = errorFile() || isolated();
  return kept;
}

void noteOrigin(void *data) {
  if (!originsAreKept() || !data)
    return;
  RunningOp *op = outermostOp();
  Origin origin{false, op ? op->name : "", callStackOfOp()};
  Shard &shard = shardOf(data);
  std::lock_guard<std::mutex> lock(shard.mutex);
  shard.origins[data] = std::move(origin);
}

void noteCopy(const at::Tensor &target) {
  if (!originsAreKept() || !target.has_storage() || !isMoving())
    return;
  const void *data = hostAddress(dataOf(*target.storage().unsafeGetStorageImpl()));
  Shard &shard = shardOf(data);
  std::lock_guard<std::mutex> lock(shard.mutex);
  auto known = shard.origins.find(data);
  if (known != shard.origins.end())
    known->second.moved = true;
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
