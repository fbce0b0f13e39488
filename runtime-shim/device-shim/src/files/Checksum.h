//===- Checksum.h - the checksum of files -----------------------*- C++ -*-===//
//
// CRC-32 as zip and zlib compute it (ISO 3309), of data that comes in pieces.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace device_shim::detail {

class Checksum {
public:
  void add(const void *data, size_t size);
  uint32_t value() const { return ~state; }

private:
  uint32_t state = ~uint32_t(0);
};

} // namespace device_shim::detail
