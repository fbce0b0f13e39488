//===- Origins.h - where tensors were made ----------------------*- C++ -*-===//
//
// Where the bytes of live tensors were made: by which operator, and from where in the program. Kept for
// error reports and isolation only.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CallStack.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>

#include <string>
#include <vector>

namespace vcuda {

struct Origin {
  bool moved; ///< made by a copy from another device
  std::string op;
  CallStack stack;
  /// Where the program made copies of it on other devices with Tensor::to, which leaves it where it is.
  std::vector<CallStack> copied;
};

bool originsAreKept();

/// What the origin of a tensor is known by. On virtual devices that is its memory, as kernels see it.
const void *originKey(c10::StorageImpl &storage);

/// What is known by `key` was made, by the operator that the program called or by what is named; is freed.
void noteOrigin(const void *key);
void noteOrigin(const void *key, const std::string &op);
void forgetOrigin(const void *key);

/// Memory of the program becomes that of a tensor.
inline constexpr const char *kFromBlob = "torch::from_blob";
void noteForeignMemory(const c10::Storage &storage);

/// `target` received what `source` holds on another device: when Tensor::to made it for that, it counts as
/// moved, and the place as one where `source` was copied.
void noteCopy(const at::Tensor &target, const at::Tensor &source);

c10::optional<Origin> originOf(const void *key);

} // namespace vcuda
