#include "analyzer/facts/Name.h"

#include <array>
#include <mutex>
#include <unordered_set>

namespace devicetidy {
namespace {

// Sharded so that parallel lowering does not queue on one lock.
struct Shard {
  std::mutex mutex;
  std::unordered_set<std::string> texts;
};

std::array<Shard, 16> &shards() {
  static auto *all = new std::array<Shard, 16>();
  return *all;
}

} // namespace

const std::string &Name::emptyText() {
  static const auto *empty = new std::string();
  return *empty;
}

Name::Name(std::string_view wanted) {
  if (wanted.empty()) {
    text = &emptyText();
    return;
  }
  Shard &shard = shards()[std::hash<std::string_view>()(wanted) % 16];
  std::lock_guard<std::mutex> lock(shard.mutex);
  text = &*shard.texts.emplace(wanted).first;
}

} // namespace devicetidy
