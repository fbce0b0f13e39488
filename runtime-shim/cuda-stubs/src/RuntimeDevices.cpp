// cudaSetDevice and its relatives.
#include "Status.h"
#include "VirtualDevices.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>

using virtualdevices::checkDevice;
using virtualdevices::report;

namespace {

constexpr int kVersion = CUDART_VERSION;

size_t hostMemory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
}

} // namespace

cudaError_t cudaGetDeviceCount(int *number) {
  *number = virtualdevices::count();
  return report(*number > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device) {
  if (virtualdevices::count() == 0)
    return report(cudaErrorNoDevice);
  *device = virtualdevices::current();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (cudaError_t error = checkDevice(device))
    return report(error);
  virtualdevices::guard().uncheckedSetDevice(
      c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device)));
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  return report(virtualdevices::count() ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
  if (cudaError_t error = checkDevice(device))
    return report(error);
  // A made-up device of a common kind; only its memory is what it is.
  cudaDeviceProp made;
  std::memset(&made, 0, sizeof(made));
  std::snprintf(made.name, sizeof(made.name), "Virtual GPU %d", device);
  size_t limit = virtualdevices::memory(device).limit;
  made.totalGlobalMem = limit ? limit : hostMemory();
  made.sharedMemPerBlock = size_t{48} << 10;
  made.sharedMemPerBlockOptin = made.sharedMemPerMultiprocessor = size_t{96} << 10;
  made.regsPerBlock = 65536;
  made.warpSize = 32;
  made.maxThreadsPerBlock = 1024;
  made.maxThreadsPerMultiProcessor = 2048;
  const int threads[] = {1024, 1024, 64}, grid[] = {2147483647, 65535, 65535};
  std::memcpy(made.maxThreadsDim, threads, sizeof(threads));
  std::memcpy(made.maxGridSize, grid, sizeof(grid));
  made.totalConstMem = 65536;
  made.major = 8;
  made.multiProcessorCount = 1;
  made.concurrentKernels = made.unifiedAddressing = made.canMapHostMemory = made.managedMemory = 1;
  made.pciBusID = device;
  *properties = made;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  if (cudaError_t error = cudaGetDeviceProperties(&properties, device))
    return error;
  switch (attribute) {
  case cudaDevAttrMaxThreadsPerBlock:
    *value = properties.maxThreadsPerBlock;
    return cudaSuccess;
  case cudaDevAttrMaxSharedMemoryPerBlock:
    *value = static_cast<int>(properties.sharedMemPerBlock);
    return cudaSuccess;
  case cudaDevAttrWarpSize:
    *value = properties.warpSize;
    return cudaSuccess;
  case cudaDevAttrMultiProcessorCount:
    *value = properties.multiProcessorCount;
    return cudaSuccess;
  case cudaDevAttrComputeCapabilityMajor:
    *value = properties.major;
    return cudaSuccess;
  case cudaDevAttrComputeCapabilityMinor:
    *value = properties.minor;
    return cudaSuccess;
  default: // asked for the sake of kernels, of which there are none
    break;
  }
  return report(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device) {
  if (cudaError_t error = checkDevice(device))
    return report(error);
  const char format[] = "0000:%02x:00.0";
  if (!id || length < 0 || length <= std::snprintf(nullptr, 0, format, device))
    return report(cudaErrorInvalidValue);
  std::snprintf(id, static_cast<size_t>(length), format, device);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  if (cudaError_t error = checkDevice(device))
    return report(error);
  if (cudaError_t error = checkDevice(peer))
    return report(error);
  *can = device != peer;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int) { return report(checkDevice(peer)); }

cudaError_t cudaDriverGetVersion(int *version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = kVersion;
  return cudaSuccess;
}
