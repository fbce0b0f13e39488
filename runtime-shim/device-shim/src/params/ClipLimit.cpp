#include "params/ClipLimit.h"

#include <device_shim/Error.h>

namespace device_shim::detail {

void requireClipLimit(double maxNorm, const std::string &user) {
  if (!(maxNorm >= 0))
    throw UsageError(user + " needs a max_norm of at least 0, not " + std::to_string(maxNorm) +
                     "; 1 is usual, infinity clips nothing");
}

} // namespace device_shim::detail
