#include "Api.h"

#include "Blocks.h"
#include "HostMemory.h"
#include "PinnedMemory.h"
#include "Settings.h"

#define VCUDA_API __attribute__((visibility("default")))

VCUDA_API void *virtual_cuda_host_address(const void *pointer) { return vcuda::hostAddress(pointer); }

VCUDA_API int virtual_cuda_device_of(const void *pointer) { return vcuda::deviceOfPointer(pointer); }

VCUDA_API void virtual_cuda_memory(int device, size_t *current, size_t *peak, size_t *limit) {
  vcuda::MemoryUse use = vcuda::memoryUse(device);
  *current = use.current;
  *peak = use.peak;
  *limit = vcuda::memoryLimit();
}

VCUDA_API void virtual_cuda_reset_peak(int device) { vcuda::resetPeakMemory(device); }

VCUDA_API void *virtual_cuda_allocate_pinned(size_t bytes) {
  try {
    return vcuda::pinnedAllocator()->raw_allocate(bytes);
  } catch (const c10::Error &) {
    return nullptr;
  }
}

VCUDA_API void virtual_cuda_free_pinned(void *pointer) {
  if (pointer)
    vcuda::pinnedAllocator()->raw_deallocate(pointer);
}

VCUDA_API int virtual_cuda_is_pinned(const void *pointer) { return vcuda::isPinned(pointer); }

VCUDA_API int virtual_cuda_register_host(void *pointer, size_t bytes) {
  return vcuda::registerPinned(pointer, bytes);
}

VCUDA_API int virtual_cuda_unregister_host(void *pointer) { return vcuda::unregisterPinned(pointer); }
