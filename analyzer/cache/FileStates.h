//===- FileStates.h - the state of files in this run ------------*- C++ -*-===//
//
// Remembers what files, directories and their contents looked like when they were first checked, so that
// each is checked once per run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/Digest.h"
#include "analyzer/facts/Name.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace devicetidy::cache {

/// What tells a changed file or directory from an unchanged one without reading it.
struct Stamp {
  std::uint64_t size = 0, inode = 0;
  std::int64_t modified = 0, changed = 0; ///< mtime and ctime, nanoseconds since the epoch

  friend bool operator==(const Stamp &a, const Stamp &b) {
    return a.size == b.size && a.inode == b.inode && a.modified == b.modified && a.changed == b.changed;
  }
  friend bool operator!=(const Stamp &a, const Stamp &b) { return !(a == b); }
};

/// Looks at each path at most once, for as long as it lives: a run sees one state of the disk. Safe to use
/// from several threads.
class FileStates {
public:
  /// Nothing when the path does not exist.
  std::optional<Stamp> stamp(Name path);

  /// The digest of the file's bytes, comments and all; nothing when it cannot be read.
  std::optional<Digest> digest(Name path);

  /// The nearest existing directory above `path`; a new file `path` changes it.
  Name existingDirectory(std::string_view path);

  /// A stamp as it may be kept. A file changed within the clock's resolution after it was looked at would
  /// keep its stamp, so a stamp of the last seconds is replaced by one that equals nothing.
  Stamp keepable(const Stamp &stamp) const;

  std::size_t hashedFiles() const { return hashed; }

private:
  struct State {
    std::once_flag looked, read;
    std::optional<Stamp> stamp;
    std::optional<Digest> digest;
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<Name, std::unique_ptr<State>> states;
  };
  State &state(Name path);

  std::array<Shard, 16> shards;
  std::atomic<std::size_t> hashed{0};
};

} // namespace devicetidy::cache
