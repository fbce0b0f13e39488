#include "HostAlias.h"

#include "Allocator.h"

namespace vcuda {

at::Tensor hostAlias(const at::Tensor &tensor) {
  TORCH_CHECK(tensor.layout() == at::kStrided && tensor.has_storage(), "expected a dense tensor, but got ",
              tensor.toString());
  c10::Storage view(hostView(*tensor.storage().unsafeGetStorageImpl()));
  at::Tensor host = at::detail::make_tensor<c10::TensorImpl>(
      std::move(view), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  host.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  return host;
}

} // namespace vcuda
