#include "autograd/DenseGradient.h"

#include <device_shim/Error.h>

#include <sstream>

namespace device_shim::detail {

void requireDenseGradient(const at::Tensor &gradient, const std::string &name, const char *user) {
  if (!gradient.defined() || gradient.layout() == at::kStrided)
    return;
  std::ostringstream text;
  text << user << " takes dense gradients only, but that of "
       << (name.empty() ? "a parameter of the shape" : "parameter " + name) << " ";
  if (name.empty())
    text << gradient.sizes() << " ";
  text << "is sparse; make the embedding layer with sparse(false)";
  throw UsageError(text.str());
}

} // namespace device_shim::detail
