//===- ModelsOverDevices.h - counts models over several devices -*- C++ -*-===//
//
// How many models of this process are spread over several devices now. Distributed training and such models
// exclude each other, whichever came first.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <atomic>

namespace device_shim::detail {

inline std::atomic<int> &modelsOverSeveralDevices() {
  static std::atomic<int> count{0};
  return count;
}

} // namespace device_shim::detail
