//===- SparseTensors.h - COO tensors in kernel calls ------------*- C++ -*-===//
//
// COO tensors for kernel calls: a sparse tensor is its indices, its values and a shape.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Tensor.h>

namespace vcuda {

bool isSparse(const at::Tensor &tensor);
at::Tensor sparseIndices(const at::Tensor &tensor);
at::Tensor sparseValues(const at::Tensor &tensor);

/// A tensor shaped like `likeness` whose parts are the given ones; lives where its values live.
at::Tensor sparseLike(const at::Tensor &likeness, const at::Tensor &indices, const at::Tensor &values);

/// Makes `target` what `likeness` is, with the given parts.
void assignSparse(const at::Tensor &target, const at::Tensor &likeness, const at::Tensor &indices,
                  const at::Tensor &values);

} // namespace vcuda
