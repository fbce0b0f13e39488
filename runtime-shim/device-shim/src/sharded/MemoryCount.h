//===- MemoryCount.h - bytes that partitions hold ---------------*- C++ -*-===//
//
// Bytes held by the partitions of a model.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace device_shim::detail {

struct MemoryCount {
  int64_t now = 0;
  int64_t peak = 0;
  void add(int64_t bytes) {
    now += bytes;
    peak = now > peak ? now : peak;
  }
};

} // namespace device_shim::detail
