#include "params/KnownParameters.h"

#include "params/WrapperClaim.h"

#include <device_shim/Error.h>

#include <string>

namespace device_shim::detail {

KnownParameters::KnownParameters(const torch::nn::Module &module) {
  for (const auto &parameter : module.parameters())
    known.insert(parameter.unsafeGetTensorImpl());
}

void KnownParameters::requireNoneAdded(const torch::nn::Module &module, const char *wrapper) const {
  for (const auto &entry : module.named_parameters()) {
    const auto &parameter = entry.value();
    if (!parameter.requires_grad() || known.count(parameter.unsafeGetTensorImpl()) || isExchanged(parameter))
      continue;
    throw UsageError("parameter " + entry.key() + " was added, or its module replaced, after " + wrapper +
                     " was made, and the ranks would not exchange its gradient; add and replace modules "
                     "first, or make the wrapper, and the optimizer, again after it");
  }
}

} // namespace device_shim::detail
