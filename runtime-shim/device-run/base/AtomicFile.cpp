#include "base/AtomicFile.h"

#include "base/RunError.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <unistd.h>

namespace devicerun {
namespace {

// A device or a pipe is written to, never replaced.
std::string nameWhileWriting(const std::string &path) {
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(path, error);
  bool replaceable = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  return replaceable ? fmt::format("{}.{}.tmp", path, getpid()) : path;
}

} // namespace

AtomicFile::AtomicFile(const std::string &path)
    : path(path), temporary(nameWhileWriting(path)), out(temporary, std::ios::binary) {
  if (!out)
    throw RunError(ExitLauncher,
                   fmt::format("cannot write {}: {}; name a file in a directory that exists and "
                               "is yours",
                               path, std::strerror(errno)));
}

AtomicFile::~AtomicFile() {
  if (!temporary.empty() && temporary != path)
    std::remove(temporary.c_str());
}

void AtomicFile::commit() {
  out.close();
  if (!out || (temporary != path && std::rename(temporary.c_str(), path.c_str()) != 0))
    throw RunError(ExitLauncher,
                   fmt::format("cannot write {}: {}; is the disk full?", path, std::strerror(errno)));
  temporary.clear();
}

} // namespace devicerun
