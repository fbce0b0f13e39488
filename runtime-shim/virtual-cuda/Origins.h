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

/// The memory at `data` (as kernels see it) was allocated, is freed.
void noteOrigin(void *data);
void forgetOrigin(void *data);

/// The program gave memory of its own to torch::from_blob.
void noteForeignMemory(void *data);

/// `target` received what `source` holds on another device: when Tensor::to made it for that, it counts as
/// moved, and the place as one where `source` was copied.
void noteCopy(const at::Tensor &target, const at::Tensor &source);

c10::optional<Origin> originOf(const void *data);

} // namespace vcuda
