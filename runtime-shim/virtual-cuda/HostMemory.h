//===- HostMemory.h - memory behind virtual devices -------------*- C++ -*-===//
//
// The host memory behind the virtual devices, and the two addresses its bytes can have.
//
// Without isolation both addresses are the same. With VIRTUAL_GPU_ISOLATE=1 all device memory lies in one
// file in memory that is mapped twice for the life of the process: programs get addresses of the mapping
// without access rights, kernels use the other one. Nothing is ever unprotected, so no other thread can
// slip through.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace vcuda {

/// Zero-initialized (no isolation) until the first allocation.
struct Arena {
  uintptr_t visible; ///< what programs see; no access
  uintptr_t host;    ///< the same bytes for kernels
  size_t size;
};
extern Arena arena;

inline bool isVisibleArena(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer) - arena.visible < arena.size;
}

/// Where kernels find what a program knows as `pointer`; any other pointer is returned as it is.
inline void *hostAddress(const void *pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  return reinterpret_cast<void *>(isVisibleArena(pointer) ? address - arena.visible + arena.host : address);
}

/// The reverse: what a program may know about memory that a kernel allocated.
inline void *visibleAddress(const void *pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  return reinterpret_cast<void *>(address - arena.host < arena.size ? address - arena.host + arena.visible
                                                                    : address);
}

/// Memory for kernels, 64-byte aligned, or nullptr when there is none left. `bytes` is the same for both.
void *allocateHostMemory(size_t bytes);
void freeHostMemory(void *memory, size_t bytes);

} // namespace vcuda
