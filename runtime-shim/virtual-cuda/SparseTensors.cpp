#include "SparseTensors.h"

#include "Compat.h"

namespace vcuda {

bool isSparse(const at::Tensor &tensor) { return tensor.layout() == at::kSparse; }

at::Tensor sparseIndices(const at::Tensor &tensor) { return at::sparse::get_sparse_impl(tensor)->indices(); }

at::Tensor sparseValues(const at::Tensor &tensor) { return at::sparse::get_sparse_impl(tensor)->values(); }

at::Tensor sparseLike(const at::Tensor &likeness, const at::Tensor &indices, const at::Tensor &values) {
  auto key = values.is_cuda() ? c10::DispatchKey::SparseCUDA : c10::DispatchKey::SparseCPU;
  at::Tensor tensor =
      at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(key), likeness.dtype());
  assignSparse(tensor, likeness, indices, values);
  return tensor;
}

void assignSparse(const at::Tensor &target, const at::Tensor &likeness, const at::Tensor &indices,
                  const at::Tensor &values) {
  at::SparseTensorImpl *impl = at::sparse::get_sparse_impl(target);
  at::SparseTensorImpl *source = at::sparse::get_sparse_impl(likeness);
  impl->raw_resize_(source->sparse_dim(), source->dense_dim(), likeness.sizes());
  impl->set_indices_and_values_unsafe(indices, values);
  impl->set_coalesced(source->coalesced());
}

} // namespace vcuda
