//===- BlobStore.h - named bytes in the cache directory ---------*- C++ -*-===//
//
// Each blob is a file of its own, written under a temporary name and renamed, so a reader finds a whole
// blob or none: there are no locks, and processes that write at once only repeat work. What is damaged all
// the same (a checksum says so) counts as absent.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/cache/Digest.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace devicetidy::cache {

class BlobStore {
public:
  /// `directory` need not exist. `limit`: bytes that trim() keeps at most.
  explicit BlobStore(std::string directory, std::uint64_t limit = defaultLimit)
      : directory(std::move(directory)), limit(limit) {}

  /// Room for the preambles of some thirty flag sets, and for the facts of far more programs.
  static constexpr std::uint64_t defaultLimit = 5'000'000'000;

  /// The blob `name` of `kind` (a word), or nothing.
  std::optional<std::string> read(std::string_view kind, const Digest &name);

  /// Never throws; what cannot be written is only not there next time, and problem() says why.
  void write(std::string_view kind, const Digest &name, std::string_view content);

  /// Where a blob is or would be, for content that others write and read.
  std::string path(std::string_view kind, const Digest &name) const;

  /// For content that is not read as one string: a file below place(), written as it is. The same file
  /// written again is left alone.
  bool writeFile(const std::string &file, std::string_view content);

  /// A unique name beside `file`; moveFile() moves what was written there to its place.
  std::string temporaryFile(const std::string &file);
  bool moveFile(const std::string &temporary, const std::string &file);

  /// Marks the file of a blob as used now, so that trim() keeps it longer.
  static void touch(const std::string &path);

  /// Removes what was not used for longest while there is more than the limit; preambles may have half of it.
  /// Does nothing when this run wrote nothing.
  void trim();

  /// Removes everything in the cache. False, with a sentence in `error`, when that fails.
  bool clear(std::string &error);

  /// Why the cache could not be written to, or empty.
  std::string problem();

  const std::string &root() const { return directory; }

private:
  bool place(const std::string &file, std::string_view head, std::string_view content);
  void fail(const std::string &sentence);

  const std::string directory;
  const std::uint64_t limit;
  std::atomic<bool> wroteSomething{false}, isBroken{false};
  std::mutex mutex;
  std::string firstProblem;
};

/// $XDG_CACHE_HOME/device-tidy or ~/.cache/device-tidy; empty when there is neither.
std::string defaultCacheDirectory();

} // namespace devicetidy::cache
