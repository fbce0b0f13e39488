//===- Blocks.h - device allocations ----------------------------*- C++ -*-===//
//
// Device allocations: which device an address belongs to, how much each device holds, and its limit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Export.h"

#include <c10/core/StorageImpl.h>

#include <atomic>
#include <cstddef>
#include <string>

namespace vcuda {

/// Precedes the bytes of every device allocation, so that a data pointer leads to it.
struct alignas(64) Block {
  size_t bytes;
  int device;
  /// Lazily created storage that shows these bytes to CPU kernels; owns one reference.
  std::atomic<c10::StorageImpl *> view;

  /// As kernels may use it; programs get visibleAddress() of it.
  void *hostData() { return this + 1; }
};

/// The block that starts at `data`, a pointer of either kind.
Block *blockAt(void *data);

/// Bytes for device `device`; nullptr for none. Throws CUDA's out-of-memory error.
VCUDA_EXPORT void *newBlock(size_t bytes, int device);

/// Takes pointers of either kind; a c10 deleter.
VCUDA_EXPORT void freeBlock(void *data);

/// A copy of what is known about the live block around an address.
struct BlockInfo {
  int device; ///< -1: the address is in no block
  size_t bytes;
  size_t offset;
};
BlockInfo findBlock(const void *pointer);
/// The same for signal handlers: gives up when the registry is being changed.
BlockInfo findBlockInSignal(const void *pointer);

/// Device of an address inside any live device allocation, or -1.
inline int deviceOfPointer(const void *pointer) { return findBlock(pointer).device; }

/// Of bytes or of allocations.
struct Amount {
  size_t current;
  size_t peak;
  size_t allocated; ///< ever, or since resetAccumulatedMemory()
  size_t freed;
  size_t highest; ///< the peak of the whole process, which nothing resets
};
struct MemoryUse {
  Amount bytes;
  Amount allocations;
  size_t outOfMemory; ///< how often there was not enough
};
VCUDA_EXPORT MemoryUse memoryUse(int device);
VCUDA_EXPORT void resetPeakMemory(int device);
VCUDA_EXPORT void resetAccumulatedMemory(int device);

/// Bytes of a device that this process may use, of all that it has.
VCUDA_EXPORT size_t usableMemory(int device);
VCUDA_EXPORT size_t totalMemory();
VCUDA_EXPORT void setMemoryFraction(int device, double fraction);
VCUDA_EXPORT double memoryFraction(int device);

/// 1536 -> "1.50 KiB", as CUDA's out-of-memory text writes sizes.
std::string formatSize(size_t bytes);

} // namespace vcuda
