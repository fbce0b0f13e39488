//===- Aging.h - a map that forgets what nobody asks for --------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace devicetidy {

/// Values by hashes. `age` forgets, where there are many, those that nobody has asked for since it last did.
template <typename Value> class Aging {
public:
  /// Null where there is none. It stays where it is until `age`.
  Value *find(std::uint64_t key) {
    if (const auto found = recent.find(key); found != recent.end())
      return &found->second;
    const auto found = older.find(key);
    if (found == older.end())
      return nullptr;
    Value &kept = recent[key] = std::move(found->second);
    older.erase(found);
    return &kept;
  }
  /// Made where there is none.
  Value &operator[](std::uint64_t key) {
    Value *const found = find(key);
    return found ? *found : recent[key];
  }
  void age(std::size_t most) {
    if (recent.size() > most)
      older = std::exchange(recent, {});
  }

private:
  std::unordered_map<std::uint64_t, Value> recent, older;
};

} // namespace devicetidy
