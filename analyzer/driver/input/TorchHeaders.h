//===- TorchHeaders.h - which headers are LibTorch's ------------*- C++ -*-===//
//
// Tells LibTorch's headers from others by the name that code includes them with.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace devicetidy::driver {

/// Is `name`, as it stands in an #include line, that of a header of LibTorch?
inline bool isTorchHeader(llvm::StringRef name) {
  return name.starts_with("torch/") || name.starts_with("ATen/") || name.starts_with("c10/") ||
         name.starts_with("caffe2/");
}

} // namespace devicetidy::driver
