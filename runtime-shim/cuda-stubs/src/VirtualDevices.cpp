#include "VirtualDevices.h"

#include <dlfcn.h>

namespace virtualdevices {
namespace {

// A function of libvirtual_cuda (its Api.h), or nullptr when it is not loaded.
template <typename Function> Function *find(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
}

} // namespace

int count() noexcept {
  if (!c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA))
    return 0;
  return c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->deviceCount();
}

const c10::impl::DeviceGuardImplInterface &guard() {
  TORCH_CHECK(count() > 0, "CUDA error: no CUDA-capable device is detected\n",
              "this program is built for virtual GPUs; preload libvirtual_cuda.so and set VIRTUAL_GPUS, or "
              "start it with device-run --virtual-gpus N");
  return *c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA);
}

int current() { return guard().getDevice().index(); }

Memory memory(int device) {
  static auto *const ask = find<void(int, size_t *, size_t *, size_t *)>("virtual_cuda_memory");
  Memory result{0, 0, 0};
  if (ask)
    ask(device, &result.current, &result.peak, &result.limit);
  return result;
}

void resetPeak(int device) {
  static auto *const reset = find<void(int)>("virtual_cuda_reset_peak");
  if (reset)
    reset(device);
}

void *hostAddress(const void *pointer) {
  static auto *const ask = find<void *(const void *)>("virtual_cuda_host_address");
  return ask ? ask(pointer) : const_cast<void *>(pointer);
}

int deviceOf(const void *pointer) {
  static auto *const ask = find<int(const void *)>("virtual_cuda_device_of");
  return ask ? ask(pointer) : -1;
}

void *allocatePinned(size_t bytes) {
  static auto *const allocate = find<void *(size_t)>("virtual_cuda_allocate_pinned");
  return allocate ? allocate(bytes) : nullptr;
}

void freePinned(void *pointer) {
  static auto *const free = find<void(void *)>("virtual_cuda_free_pinned");
  if (free)
    free(pointer);
}

bool isPinned(const void *pointer) {
  static auto *const ask = find<int(const void *)>("virtual_cuda_is_pinned");
  return ask && ask(pointer);
}

bool registerHost(void *pointer, size_t bytes) {
  static auto *const add = find<int(void *, size_t)>("virtual_cuda_register_host");
  return add && add(pointer, bytes);
}

bool unregisterHost(void *pointer) {
  static auto *const remove = find<int(void *)>("virtual_cuda_unregister_host");
  return remove && remove(pointer);
}

} // namespace virtualdevices
