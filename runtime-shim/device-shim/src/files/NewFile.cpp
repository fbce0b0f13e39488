#include "files/NewFile.h"

#include <device_shim/Error.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace device_shim::detail {
namespace {

namespace fs = std::filesystem;

std::string hostName() {
  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  return name;
}

fs::path folderOf(const fs::path &file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// A link stays a link.
std::string behindLinks(fs::path path) {
  std::error_code error;
  constexpr int kMostLinks = 40; // as the kernel follows
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, error); ++i) {
    const auto target = fs::read_symlink(path, error);
    if (error)
      break;
    path = target.is_absolute() ? target : folderOf(path) / target;
  }
  return path.string();
}

std::string temporaryPrefix(const std::string &path) { return path + ".writing-"; }

// Whoever writes a file holds its lock, on other machines and in other containers, too.
bool isAbandoned(const std::string &file) {
  const int descriptor = open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0)
    return false;
  const bool isFree = flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  close(descriptor);
  return isFree;
}

void removeLeftovers(const std::string &path) {
  const auto prefix = fs::path(temporaryPrefix(path)).filename().string();
  std::error_code error;
  for (fs::directory_iterator entry(folderOf(path), error), end; !error && entry != end;
       entry.increment(error))
    if (const auto name = entry->path().filename().string();
        name.compare(0, prefix.size(), prefix) == 0 && isAbandoned(entry->path().string()))
      fs::remove(entry->path(), error);
}

// A name in a folder survives a crash of the machine when the folder is on the disk, too. Some file systems
// cannot do that for folders, and need it less.
void flushFolderOf(const std::string &path) {
  const int folder = open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return;
  fsync(folder);
  close(folder);
}

} // namespace

NewFile::NewFile(const std::string &wanted)
    : path(behindLinks(wanted)),
      temporary(temporaryPrefix(path) + hostName() + "-" + std::to_string(getpid())) {
  removeLeftovers(path);
  struct stat before{};
  const bool replaces = stat(path.c_str(), &before) == 0;
  descriptor = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0)
    keepError("open");
  else
    flock(descriptor, LOCK_EX); // where a file system has no locks, leftovers stay
  if (replaces && descriptor >= 0 && fchmod(descriptor, before.st_mode & 07777) != 0)
    keepError("set the permissions");
}

NewFile::~NewFile() {
  if (descriptor < 0)
    return;
  close(descriptor);
  unlink(temporary.c_str());
}

void NewFile::keepError(const char *what) {
  if (problem.empty())
    problem = std::string("cannot ") + what + ": " + std::strerror(errno);
}

void NewFile::append(const void *data, size_t size) {
  const auto *bytes = static_cast<const char *>(data);
  while (size > 0 && problem.empty()) {
    const auto written = write(descriptor, bytes, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return keepError("write");
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

void NewFile::setLastTwoBytes(uint16_t value) {
  const unsigned char bytes[] = {static_cast<unsigned char>(value & 0xFF),
                                 static_cast<unsigned char>(value >> 8)};
  if (problem.empty() && (lseek(descriptor, -2, SEEK_END) < 0 || write(descriptor, bytes, 2) != 2))
    keepError("write");
}

void NewFile::replace() {
  if (problem.empty() && fsync(descriptor) != 0)
    keepError("flush to the disk");
  if (descriptor >= 0 && close(descriptor) != 0) // some file systems say only here that the disk is full
    keepError("close");
  const bool isOpened = descriptor >= 0;
  descriptor = -1;
  if (problem.empty() && rename(temporary.c_str(), path.c_str()) != 0)
    keepError("rename");
  if (problem.empty())
    return flushFolderOf(path);
  if (isOpened)
    unlink(temporary.c_str());
  throw Error("cannot write '" + path + "' (" + problem +
              "); what was there before is unchanged. Check that the "
              "folder exists, may be written to and has space");
}

} // namespace device_shim::detail
