// Where the bytes of live tensors were made: by which operator, and from where in the program. Kept for
// error reports and isolation only.
#pragma once

#include "CallStack.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>

#include <string>

namespace vcuda {

struct Origin {
  bool moved; // made by a copy from another device
  std::string op;
  CallStack stack;
};

bool originsAreKept();

// The memory at `data` (as kernels see it) was allocated, is freed.
void noteOrigin(void *data);
void forgetOrigin(void *data);

// `target` received what is on another device: when Tensor::to made it for that, it counts as moved.
void noteCopy(const at::Tensor &target);

c10::optional<Origin> originOf(const void *data);

} // namespace vcuda
