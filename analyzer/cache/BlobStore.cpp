#include "analyzer/cache/BlobStore.h"

#include "analyzer/cache/Bytes.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

namespace devicetidy::cache {
namespace {

namespace fs = llvm::sys::fs;

constexpr std::string_view magic = "DTCACHE1"; // of the frame; what is inside belongs to the tool's digest
constexpr std::size_t frameSize = 32;          // magic, size, checksum

void appendFrame(ByteWriter &writer, std::string_view content) {
  const llvm::XXH128_hash_t sum =
      llvm::xxh3_128bits({reinterpret_cast<const std::uint8_t *>(content.data()), content.size()});
  writer.bytes += magic;
  writer.number(content.size());
  writer.number(sum.low64);
  writer.number(sum.high64);
}

bool hasFrame(std::string_view file) {
  if (file.size() < frameSize)
    return false;
  ByteWriter expected;
  appendFrame(expected, file.substr(frameSize));
  return file.substr(0, frameSize) == expected.bytes;
}

struct StoredFile {
  std::string path;
  std::uint64_t size;
  fs::file_status status;
};

/// The folders this program makes in a cache directory, which may hold other things too, by mistake or not:
/// KIND/XX, with two digits of a digest.
std::vector<std::string> ownFolders(const std::string &directory) {
  std::vector<std::string> folders;
  for (const char *kind : {"units", "sets", "modules", "preambles"}) {
    llvm::SmallString<128> path(directory);
    llvm::sys::path::append(path, kind);
    std::error_code code;
    for (fs::directory_iterator entry(path, code), end; !code && entry != end; entry.increment(code)) {
      const llvm::StringRef name = llvm::sys::path::filename(entry->path());
      if (name.size() == 2 && llvm::isHexDigit(name[0]) && llvm::isHexDigit(name[1]))
        folders.push_back(entry->path());
    }
  }
  return folders;
}

/// Every file of this program in `directory`, also what is left of writers that were killed.
std::vector<StoredFile> storedFiles(const std::string &directory) {
  std::vector<StoredFile> files;
  for (const std::string &folder : ownFolders(directory)) {
    std::error_code code;
    for (fs::recursive_directory_iterator entry(folder, code, /*FollowSymlinks=*/false), end;
         !code && entry != end; entry.increment(code)) {
      fs::file_status status;
      if (!fs::status(entry->path(), status, /*Follow=*/false) &&
          status.type() == fs::file_type::regular_file)
        files.push_back({entry->path(), status.getSize(), status});
    }
  }
  return files;
}

/// Removes what was not used for longest while there is more than `limit`. Returns how many bytes stay.
std::uint64_t removeOldest(std::vector<StoredFile> files, std::uint64_t limit) {
  std::uint64_t total = 0;
  for (const StoredFile &file : files)
    total += file.size;
  if (total <= limit)
    return total;
  std::sort(files.begin(), files.end(), [](const StoredFile &a, const StoredFile &b) {
    const auto left = a.status.getLastModificationTime(), right = b.status.getLastModificationTime();
    return left != right ? left < right : a.path < b.path;
  });
  // Below the limit by a margin, so that not every run has to remove something.
  for (const StoredFile &file : files) {
    if (total <= limit - limit / 10)
      break;
    if (!fs::remove(file.path))
      total -= file.size;
  }
  return total;
}

} // namespace

std::string defaultCacheDirectory() {
  llvm::SmallString<128> path;
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && llvm::sys::path::is_absolute(cache))
    path = cache;
  else if (const char *home = std::getenv("HOME"); home && *home)
    llvm::sys::path::append(path, home, ".cache");
  else
    return {};
  llvm::sys::path::append(path, "device-tidy");
  return path.str().str();
}

std::string BlobStore::path(std::string_view kind, const Digest &name) const {
  const std::string hex = name.hex();
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path, llvm::StringRef(kind), hex.substr(0, 2), hex.substr(2));
  return path.str().str();
}

std::optional<std::string> BlobStore::read(std::string_view kind, const Digest &name) {
  const std::string file = path(kind, name);
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                            /*IsVolatile=*/true);
  if (!buffer || !hasFrame((*buffer)->getBuffer()))
    return std::nullopt;
  touch(file);
  return (*buffer)->getBuffer().drop_front(frameSize).str();
}

void BlobStore::write(std::string_view kind, const Digest &name, std::string_view content) {
  ByteWriter frame;
  appendFrame(frame, content);
  place(path(kind, name), frame.bytes, content);
}

bool BlobStore::writeFile(const std::string &file, std::string_view content) {
  auto present = llvm::MemoryBuffer::getFile(file);
  if (present && std::string_view((*present)->getBuffer()) == content)
    return true;
  return place(file, {}, content);
}

bool BlobStore::place(const std::string &file, std::string_view head, std::string_view content) {
  if (isBroken)
    return false; // a directory that refuses one file refuses the next
  const std::string temporary = temporaryFile(file);
  if (temporary.empty())
    return false;
  std::error_code code;
  llvm::raw_fd_ostream stream(temporary, code);
  stream << llvm::StringRef(head) << llvm::StringRef(content);
  stream.close();
  if (!code)
    code = stream.error();
  stream.clear_error(); // else its destructor ends the program
  if (code) {
    fs::remove(temporary);
    fail(directory + ": " + code.message());
    return false;
  }
  return moveFile(temporary, file);
}

std::string BlobStore::temporaryFile(const std::string &file) {
  std::error_code code = fs::create_directories(llvm::sys::path::parent_path(file));
  llvm::SmallString<128> temporary;
  if (!code)
    code = fs::createUniqueFile(file + ".%%%%%%%%.new", temporary);
  if (!code)
    return temporary.str().str();
  fail(directory + ": " + code.message());
  return {};
}

bool BlobStore::moveFile(const std::string &temporary, const std::string &file) {
  std::error_code code = fs::create_directories(llvm::sys::path::parent_path(file));
  if (!code)
    code = fs::rename(temporary, file);
  if (code) {
    fs::remove(temporary);
    fail(directory + ": " + code.message());
    return false;
  }
  wroteSomething = true;
  return true;
}

void BlobStore::touch(const std::string &path) {
  // Once an hour is often enough to know what was used last.
  struct stat found;
  if (::stat(path.c_str(), &found) != 0)
    return;
  const auto age = std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(found.st_mtime);
  if (age > std::chrono::hours(1))
    (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

void BlobStore::trim() {
  if (!wroteSomething)
    return;
  // What is left of a unit whose facts are kept is small, and it needs no preamble: those have half.
  const std::string preambles = directory + "/preambles/";
  std::vector<StoredFile> files = storedFiles(directory);
  const auto others = std::partition(files.begin(), files.end(), [&](const StoredFile &file) {
    return llvm::StringRef(file.path).starts_with(preambles);
  });
  const std::uint64_t kept = removeOldest({files.begin(), others}, limit / 2);
  removeOldest({others, files.end()}, limit - kept);
}

bool BlobStore::clear(std::string &error) {
  for (const std::string &folder : ownFolders(directory))
    if (const std::error_code code = fs::remove_directories(folder, /*IgnoreErrors=*/false)) {
      error = folder + ": " + code.message();
      return false;
    }
  return true;
}

std::string BlobStore::problem() {
  std::lock_guard<std::mutex> lock(mutex);
  return firstProblem;
}

void BlobStore::fail(const std::string &sentence) {
  isBroken = true;
  std::lock_guard<std::mutex> lock(mutex);
  if (firstProblem.empty())
    firstProblem = sentence;
}

} // namespace devicetidy::cache
