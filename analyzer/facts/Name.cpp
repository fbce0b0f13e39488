#include "analyzer/facts/Name.h"

#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace devicetidy {
namespace {

// Sharded so that parallel lowering does not queue on one lock.
struct Shard {
  std::mutex mutex;
  std::unordered_map<std::string_view, std::unique_ptr<const std::string>> texts; ///< keys are in the texts
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
  // Nearly every name is known already: looking it up makes no string.
  if (auto known = shard.texts.find(wanted); known != shard.texts.end()) {
    text = known->second.get();
    return;
  }
  auto fresh = std::make_unique<const std::string>(wanted);
  text = fresh.get();
  shard.texts.emplace(*fresh, std::move(fresh));
}

} // namespace devicetidy
