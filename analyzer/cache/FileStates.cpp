#include "analyzer/cache/FileStates.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>

namespace devicetidy::cache {
namespace {

std::int64_t nanoseconds(const timespec &time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

std::optional<Stamp> lookAt(const std::string &path) {
  struct stat found;
  if (::stat(path.c_str(), &found) != 0)
    return std::nullopt;
  return Stamp{static_cast<std::uint64_t>(found.st_size), static_cast<std::uint64_t>(found.st_ino),
               nanoseconds(found.st_mtim), nanoseconds(found.st_ctim)};
}

} // namespace

FileStates::State &FileStates::state(Name path) {
  Shard &shard = shards[path.hash() / 64 % shards.size()]; // the low bits of an address are always alike
  std::lock_guard<std::mutex> lock(shard.mutex);
  std::unique_ptr<State> &entry = shard.states[path];
  if (!entry)
    entry = std::make_unique<State>();
  return *entry;
}

std::optional<Stamp> FileStates::stamp(Name path) {
  State &known = state(path);
  std::call_once(known.looked, [&] { known.stamp = lookAt(path.str()); });
  return known.stamp;
}

std::optional<Digest> FileStates::digest(Name path) {
  State &known = state(path);
  std::call_once(known.read, [&] {
    // Not mapped: a file that shrinks while it is read must not end the program.
    auto content = llvm::MemoryBuffer::getFile(path.str(), /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                               /*IsVolatile=*/true);
    if (content) {
      known.digest = digestOf((*content)->getBuffer());
      ++hashed;
    }
  });
  return known.digest;
}

Name FileStates::existingDirectory(std::string_view path) {
  llvm::StringRef directory = llvm::sys::path::parent_path(llvm::StringRef(path));
  while (!directory.empty() && directory != "/" && !stamp(Name(std::string_view(directory))))
    directory = llvm::sys::path::parent_path(directory);
  return Name(directory.empty() ? std::string_view("/") : std::string_view(directory));
}

Stamp FileStates::keepable(const Stamp &stamp) const {
  using namespace std::chrono;
  const std::int64_t now =
      duration_cast<std::chrono::nanoseconds>(system_clock::now().time_since_epoch()).count();
  constexpr std::int64_t resolution = 2'000'000'000;
  if (std::max(stamp.modified, stamp.changed) + resolution > now)
    return {~std::uint64_t{0}, 0, 0, 0};
  return stamp;
}

} // namespace devicetidy::cache
