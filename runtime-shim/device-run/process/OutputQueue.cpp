#include "process/OutputQueue.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <poll.h>
#include <unistd.h>

namespace devicerun {

bool OutputQueue::writable(int milliseconds) const {
  pollfd one{descriptor, POLLOUT, 0};
  return poll(&one, 1, milliseconds) > 0;
}

void OutputQueue::flush() {
  // A pipe that polls as writable takes PIPE_BUF bytes without blocking. The descriptor stays in blocking
  // mode: others share it.
  while (!empty() && !closed && writable(0)) {
    std::size_t chunk = std::min<std::size_t>(PIPE_BUF, waiting.size() - written);
    ssize_t done = write(descriptor, waiting.data() + written, chunk);
    if (done >= 0)
      written += static_cast<std::size_t>(done);
    else if (errno != EINTR && errno != EAGAIN) {
      closed = true;
      failure = errno;
    }
  }
  if (empty() || closed) {
    waiting.clear();
    written = 0;
  } else if (written > (std::size_t{1} << 20)) {
    waiting.erase(0, written);
    written = 0;
  }
}

void OutputQueue::drain() {
  constexpr int forever = -1;
  for (flush(); !empty() && !closed; flush())
    writable(forever);
}

} // namespace devicerun
