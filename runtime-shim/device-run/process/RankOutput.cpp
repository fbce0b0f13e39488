#include "process/RankOutput.h"

#include "base/RunError.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace devicerun {

RankOutput::RankOutput(int descriptor, const std::string &prefix, const std::string &logFile,
                       OutputQueue &queue)
    : descriptor(descriptor), prefixer(prefix), queue(queue) {
  if (logFile.empty())
    return;
  log = ::open(logFile.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (log < 0) {
    int error = errno;
    ::close(descriptor);
    throw RunError(ExitLauncher,
                   fmt::format("cannot write {}: {}; name another --log-dir", logFile, std::strerror(error)));
  }
}

RankOutput::~RankOutput() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (log >= 0)
    ::close(log);
}

void RankOutput::writeLog(std::string_view bytes) {
  while (log >= 0 && !bytes.empty()) {
    ssize_t done = write(log, bytes.data(), bytes.size());
    if (done >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(done));
    } else if (errno != EINTR) {
      // A full disk must not end the job.
      ::close(log);
      log = -1;
    }
  }
}

bool RankOutput::receiveOnce() {
  std::array<char, 1 << 16> block; // NOLINT(cppcoreguidelines-pro-type-member-init): read() fills it
  ssize_t count = read(descriptor, block.data(), block.size());
  if (count > 0) {
    std::string_view bytes(block.data(), static_cast<std::size_t>(count));
    writeLog(bytes);
    last.feed(bytes);
    prefixer.feed(bytes, queue.buffer());
    return true;
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  close();
  return false;
}

void RankOutput::receive() {
  if (open())
    receiveOnce();
}

void RankOutput::finish() {
  while (open() && receiveOnce())
    continue;
  if (open())
    close();
}

void RankOutput::close() {
  prefixer.finish(queue.buffer());
  ::close(descriptor);
  descriptor = -1;
}

} // namespace devicerun
