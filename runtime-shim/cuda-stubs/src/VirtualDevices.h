// The virtual GPUs, as this library reaches them: through LibTorch's own registries for devices and
// streams, and through the functions libvirtual_cuda exports for memory. Without libvirtual_cuda there are
// no devices, as on a machine without a GPU.
#pragma once

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstddef>

namespace virtualdevices {

int count() noexcept;
int current();

// The guard of CUDA devices; throws when there are no virtual GPUs.
const c10::impl::DeviceGuardImplInterface &guard();

struct Memory {
  size_t current, peak, limit;
};
Memory memory(int device);
void resetPeak(int device);

void *hostAddress(const void *pointer);
// -1: host memory
int deviceOf(const void *pointer);
void *allocatePinned(size_t bytes);
void freePinned(void *pointer);
bool isPinned(const void *pointer);
// Makes memory of the program pinned; false when some of it is.
bool registerHost(void *pointer, size_t bytes);
// False when the address is not one that registerHost() was given.
bool unregisterHost(void *pointer);

} // namespace virtualdevices
