// Sees the tensors that torch::from_blob makes of the program's own memory, in the way of CheckFailures.cpp:
// LibTorch's function is found behind this one.
#include "Origins.h"

#include <ATen/ATen.h>

#include <dlfcn.h>

namespace at {

Tensor TensorMaker::make_tensor() {
  // A member function is called like a function that takes `this` first.
  using Make = Tensor (*)(TensorMaker *);
  static const Make make = reinterpret_cast<Make>(dlsym(RTLD_NEXT, "_ZN2at11TensorMaker11make_tensorEv"));
  TORCH_CHECK(make, "virtual-cuda is linked behind LibTorch; link it before, or preload it");
  Tensor tensor = make(this);
  if (tensor.has_storage())
    vcuda::noteForeignMemory(const_cast<void *>(tensor.storage().data_ptr().get()));
  return tensor;
}

} // namespace at
