#include "comm/SlicedWait.h"

#include <device_shim/Error.h>

#include <string>

namespace device_shim::detail {

void waitInSlices(c10d::Work &work, const char *operation, Liveness *liveness,
                  std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (true) {
    try {
      work.wait(kSlice);
      return;
    } catch (const std::exception &) {
      // Thrown for the end of the slice, and for a work that failed; which one, wait() says when it is over.
      if (work.isCompleted()) {
        work.wait();
        return;
      }
    }
    if (liveness && liveness->hasFailed())
      throw PeerError(std::string("another rank failed before '") + operation + "' was over");
    if (std::chrono::steady_clock::now() <= end)
      continue;
    if (liveness)
      liveness->reportTimeout(operation, timeout);
    throw PeerError(std::string("the other ranks did not take part in '") + operation +
                    "' within the collective_timeout");
  }
}

} // namespace device_shim::detail
