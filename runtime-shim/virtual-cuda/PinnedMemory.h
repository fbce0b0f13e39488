//===- PinnedMemory.h - page-locked host memory -----------------*- C++ -*-===//
//
// Page-locked host memory: ordinary memory that is remembered as pinned.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <c10/core/Allocator.h>

namespace vcuda {

c10::Allocator *pinnedAllocator();

/// Memory of the program that is pinned from here on. False when some of it is pinned already.
bool registerPinned(void *data, size_t bytes);

/// False when `data` is not the begin of registered memory.
bool unregisterPinned(void *data);

/// True for addresses inside live pinned memory.
bool isPinned(const void *pointer);

} // namespace vcuda
