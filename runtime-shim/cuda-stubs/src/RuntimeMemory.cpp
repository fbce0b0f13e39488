// cudaMalloc, cudaMemcpy and their relatives.
#include "ManagedMemory.h"
#include "Status.h"
#include "VirtualDevices.h"

#include <c10/core/Allocator.h>
#include <unistd.h>

#include <cstring>

using virtualdevices::deviceOf;
using virtualdevices::hostAddress;
using virtualdevices::isManaged;
using virtualdevices::report;

namespace {

// Whether both pointers are where the direction of a copy says.
bool fits(const void *target, const void *source, cudaMemcpyKind kind) {
  if (isManaged(target) || isManaged(source))
    return true;
  bool toDevice = deviceOf(target) >= 0, fromDevice = deviceOf(source) >= 0;
  switch (kind) {
  case cudaMemcpyHostToHost:
    return !toDevice && !fromDevice;
  case cudaMemcpyHostToDevice:
    return toDevice && !fromDevice;
  case cudaMemcpyDeviceToHost:
    return !toDevice && fromDevice;
  case cudaMemcpyDeviceToDevice:
    return toDevice && fromDevice;
  case cudaMemcpyDefault:
    return true;
  }
  return false;
}

// What the host had free at first. Memory that is allocated and not yet written is still free to the system,
// so it is not asked again.
size_t freeHostMemory() {
  static const size_t bytes =
      static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  return bytes;
}

} // namespace

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  if (virtualdevices::count() == 0)
    return report(cudaErrorNoDevice);
  try {
    *pointer = c10::GetAllocator(c10::DeviceType::CUDA)->raw_allocate(bytes);
    return cudaSuccess;
  } catch (const c10::Error &) {
    return report(cudaErrorMemoryAllocation);
  }
}

cudaError_t cudaFree(void *pointer) {
  if (!pointer)
    return cudaSuccess;
  if (deviceOf(pointer) < 0)
    return report(cudaErrorInvalidValue);
  virtualdevices::forgetManaged(pointer);
  c10::GetAllocator(c10::DeviceType::CUDA)->raw_deallocate(pointer);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
  if (virtualdevices::count() == 0)
    return report(cudaErrorNoDevice);
  *pointer = virtualdevices::allocatePinned(bytes);
  return report(*pointer || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int) {
  return cudaMallocHost(pointer, bytes);
}

cudaError_t cudaFreeHost(void *pointer) {
  virtualdevices::freePinned(pointer);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int) {
  if (virtualdevices::count() == 0)
    return report(cudaErrorNoDevice);
  if (!pointer || bytes == 0)
    return report(cudaErrorInvalidValue);
  return report(virtualdevices::registerHost(pointer, bytes) ? cudaSuccess
                                                             : cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void *pointer) {
  return report(virtualdevices::unregisterHost(pointer) ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  int device = 0;
  cudaDeviceProp properties;
  if (cudaError_t error = cudaGetDevice(&device))
    return error;
  if (cudaError_t error = cudaGetDeviceProperties(&properties, device))
    return error;
  virtualdevices::Memory memory = virtualdevices::memory(device);
  *total = properties.totalGlobalMem;
  const size_t most = memory.limit ? memory.limit : freeHostMemory();
  *free = most > memory.current ? most - memory.current : 0;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void *target, const void *source, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0)
    return cudaSuccess;
  if (!target || !source || !fits(target, source, kind))
    return report(cudaErrorInvalidValue);
  std::memmove(hostAddress(target), hostAddress(source), bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return cudaMemcpy(target, source, bytes, kind);
}

cudaError_t cudaMemcpyPeer(void *target, int targetDevice, const void *source, int sourceDevice,
                           size_t bytes) {
  if (deviceOf(target) != targetDevice || deviceOf(source) != sourceDevice)
    return report(cudaErrorInvalidValue);
  return cudaMemcpy(target, source, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyPeerAsync(void *target, int targetDevice, const void *source, int sourceDevice,
                                size_t bytes, cudaStream_t) {
  return cudaMemcpyPeer(target, targetDevice, source, sourceDevice, bytes);
}

cudaError_t cudaMemset(void *target, int value, size_t bytes) {
  if (bytes && deviceOf(target) < 0)
    return report(cudaErrorInvalidValue);
  if (bytes)
    std::memset(hostAddress(target), value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *target, int value, size_t bytes, cudaStream_t) {
  return cudaMemset(target, value, bytes);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
  int device = deviceOf(pointer);
  void *address = const_cast<void *>(pointer);
  if (isManaged(pointer))
    *attributes = {cudaMemoryTypeManaged, device, address, address};
  else if (device >= 0)
    *attributes = {cudaMemoryTypeDevice, device, address, nullptr};
  else if (virtualdevices::isPinned(pointer))
    *attributes = {cudaMemoryTypeHost, virtualdevices::current(), address, address};
  else
    *attributes = {cudaMemoryTypeUnregistered, -1, nullptr, address};
  return cudaSuccess;
}
