#include "launch/Scratch.h"

#include "base/RunError.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace devicerun {
namespace {

namespace fs = std::filesystem;

const char *const kPrefix = "device-run-";
const char *const kLock = "launcher.lock";

/// Opens the lock of a folder and takes it; -1 when another process has it, or there is none.
int takeLock(const fs::path &folder, int flags) {
  const int file = open((folder / kLock).c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
  if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
    return file;
  if (file >= 0)
    close(file);
  return -1;
}

void removeAbandoned(const std::string &parent) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().rfind(kPrefix, 0) != 0)
      continue;
    const int lock = takeLock(entry->path(), 0);
    if (lock < 0)
      continue;
    std::error_code ignored;
    fs::remove_all(entry->path(), ignored);
    close(lock);
  }
}

} // namespace

std::string makeScratch(const Environment &environment) {
  const auto named = environment.find("TMPDIR");
  const std::string parent = named == environment.end() || named->second.empty() ? "/tmp" : named->second;
  removeAbandoned(parent);
  std::string pattern = parent + "/" + kPrefix + "XXXXXX";
  if (!mkdtemp(pattern.data()))
    throw RunError(ExitLauncher,
                   fmt::format("cannot make a directory {}: {}; set TMPDIR to a directory of yours", pattern,
                               std::strerror(errno)));
  takeLock(pattern, O_CREAT); // closed by the end of the last process that has it
  return fs::absolute(pattern);
}

} // namespace devicerun
