#include "Implementation.h"

#define VCUDA_API __attribute__((visibility("default")))

namespace {

// What `function` of the implementation returns, or `otherwise` where there are no virtual devices.
template <typename Function, typename Result, typename... Arguments>
Result call(Function vcuda::Implementation::*function, Result otherwise, Arguments... arguments) {
  const vcuda::Implementation *loaded = vcuda::implementation();
  return loaded && loaded->*function ? (loaded->*function)(arguments...) : otherwise;
}

} // namespace

using vcuda::Implementation;

VCUDA_API void *virtual_cuda_host_address(const void *pointer) {
  return call(&Implementation::hostAddress, const_cast<void *>(pointer), pointer);
}

VCUDA_API int virtual_cuda_device_of(const void *pointer) {
  return call(&Implementation::deviceOf, -1, pointer);
}

VCUDA_API void virtual_cuda_memory(int device, size_t *current, size_t *peak, size_t *limit) {
  *current = *peak = *limit = 0;
  if (const Implementation *loaded = vcuda::implementation(); loaded && loaded->memory)
    loaded->memory(device, current, peak, limit);
}

VCUDA_API void virtual_cuda_reset_peak(int device) {
  if (const Implementation *loaded = vcuda::implementation(); loaded && loaded->resetPeak)
    loaded->resetPeak(device);
}

VCUDA_API void *virtual_cuda_allocate_pinned(size_t bytes) {
  return call(&Implementation::allocatePinned, static_cast<void *>(nullptr), bytes);
}

VCUDA_API void virtual_cuda_free_pinned(void *pointer) {
  if (const Implementation *loaded = vcuda::implementation(); loaded && loaded->freePinned)
    loaded->freePinned(pointer);
}

VCUDA_API int virtual_cuda_is_pinned(const void *pointer) {
  return call(&Implementation::isPinned, 0, pointer);
}

VCUDA_API int virtual_cuda_register_host(void *pointer, size_t bytes) {
  return call(&Implementation::registerHost, 0, pointer, bytes);
}

VCUDA_API int virtual_cuda_unregister_host(void *pointer) {
  return call(&Implementation::unregisterHost, 0, pointer);
}
