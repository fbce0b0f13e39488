#include "base/NormalTensors.h"

#include <ATen/ATen.h>

namespace device_shim::detail {

at::Tensor writable(const at::Tensor &tensor) {
  NormalTensors normal;
  if (!tensor.is_inference())
    return tensor.detach();
  auto alias = at::empty({0}, tensor.options().requires_grad(false));
  return alias.set_(tensor.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
}

} // namespace device_shim::detail
