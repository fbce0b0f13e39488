// Page-locked host memory: ordinary memory that is remembered as pinned.
#pragma once

#include <c10/core/Allocator.h>

namespace vcuda {

c10::Allocator *pinnedAllocator();

// True for addresses inside live pinned memory.
bool isPinned(const void *pointer);

} // namespace vcuda
