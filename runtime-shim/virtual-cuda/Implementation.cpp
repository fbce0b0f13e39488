// What libvirtual_cuda.so, which is preloaded, finds in this library.
#include "preload/Implementation.h"

#include "Blocks.h"
#include "ErrorRecords.h"
#include "HostMemory.h"
#include "Origins.h"
#include "PinnedMemory.h"
#include "Settings.h"

#include <ATen/core/Tensor.h>

namespace {

void *hostAddress(const void *pointer) { return vcuda::hostAddress(pointer); }

void memory(int device, size_t *current, size_t *peak, size_t *limit) {
  vcuda::MemoryUse use = vcuda::memoryUse(device);
  *current = use.bytes.current;
  *peak = use.bytes.peak;
  *limit = vcuda::memoryLimit();
}

void *allocatePinned(size_t bytes) {
  try {
    return vcuda::pinnedAllocator()->raw_allocate(bytes);
  } catch (const c10::Error &) {
    return nullptr;
  }
}

void freePinned(void *pointer) {
  if (pointer)
    vcuda::pinnedAllocator()->raw_deallocate(pointer);
}

int isPinned(const void *pointer) { return vcuda::isPinned(pointer); }
int registerHost(void *pointer, size_t bytes) { return vcuda::registerPinned(pointer, bytes); }
int unregisterHost(void *pointer) { return vcuda::unregisterPinned(pointer); }

void checkFails(const char *function, const char *text) { vcuda::recordIfMixedDevices(text, function); }

void blobMade(const void *made) {
  const auto &tensor = *static_cast<const at::Tensor *>(made);
  if (tensor.has_storage())
    vcuda::noteForeignMemory(tensor.storage());
}

} // namespace

extern "C" __attribute__((visibility("default")))
const vcuda::Implementation virtual_cuda_implementation = {&hostAddress,    &vcuda::deviceOfPointer,
                                                           &memory,         &vcuda::resetPeakMemory,
                                                           &allocatePinned, &freePinned,
                                                           &isPinned,       &registerHost,
                                                           &unregisterHost, &checkFails,
                                                           &blobMade};
