// The functions of c10::cuda and at::cuda.
#include "VirtualDevices.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <array>
#include <mutex>

namespace {

c10::Device deviceOrCurrent(c10::DeviceIndex index) {
  c10::Device device(c10::DeviceType::CUDA, index);
  return index < 0 ? virtualdevices::guard().getDevice() : device;
}

c10::cuda::CUDAStream wrap(c10::Stream stream) {
  return c10::cuda::CUDAStream(c10::cuda::CUDAStream::UNCHECKED, stream);
}

} // namespace

namespace c10 {
namespace cuda {

void throwOnError(cudaError_t error, const char *function, const char *file, unsigned line) {
  if (error == cudaSuccess)
    return;
  (void)cudaGetLastError();
  throw CUDAError({function, file, line}, std::string("CUDA error: ") + cudaGetErrorString(error));
}

DeviceIndex device_count() noexcept { return static_cast<DeviceIndex>(virtualdevices::count()); }

DeviceIndex device_count_ensure_non_zero() {
  virtualdevices::guard();
  return device_count();
}

DeviceIndex current_device() { return static_cast<DeviceIndex>(virtualdevices::current()); }

void set_device(DeviceIndex device) { virtualdevices::guard().setDevice(Device(DeviceType::CUDA, device)); }

DeviceIndex ExchangeDevice(DeviceIndex device) {
  DeviceIndex previous = current_device();
  set_device(device);
  return previous;
}

DeviceIndex MaybeExchangeDevice(DeviceIndex device) {
  return device < 0 ? current_device() : ExchangeDevice(device);
}

void device_synchronize() { virtualdevices::guard(); }

CUDAStream getStreamFromPool(bool isHighPriority, DeviceIndex device) {
  return wrap(virtualdevices::guard().getStreamFromGlobalPool(deviceOrCurrent(device), isHighPriority));
}

CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device) {
  return wrap(Stream(Stream::UNSAFE, deviceOrCurrent(device), reinterpret_cast<StreamId>(stream)));
}

CUDAStream getDefaultCUDAStream(DeviceIndex device) {
  return wrap(virtualdevices::guard().getDefaultStream(deviceOrCurrent(device)));
}

CUDAStream getCurrentCUDAStream(DeviceIndex device) {
  return wrap(virtualdevices::guard().getStream(deviceOrCurrent(device)));
}

void setCurrentCUDAStream(CUDAStream stream) { virtualdevices::guard().exchangeStream(stream.unwrap()); }

namespace CUDACachingAllocator {

Allocator *get() {
  virtualdevices::guard();
  return GetAllocator(DeviceType::CUDA);
}

void *raw_alloc(size_t bytes) { return get()->raw_allocate(bytes); }

void raw_delete(void *pointer) {
  if (pointer)
    get()->raw_deallocate(pointer);
}

DeviceStats getDeviceStats(DeviceIndex device) {
  virtualdevices::Memory memory = virtualdevices::memory(device);
  DeviceStats stats;
  Stat &bytes = stats.allocated_bytes[static_cast<size_t>(StatType::AGGREGATE)];
  bytes.current = static_cast<int64_t>(memory.current);
  bytes.peak = static_cast<int64_t>(memory.peak);
  stats.reserved_bytes = stats.active_bytes = stats.allocated_bytes;
  return stats;
}

void resetPeakStats(DeviceIndex device) { virtualdevices::resetPeak(device); }

} // namespace CUDACachingAllocator
} // namespace cuda
} // namespace c10

namespace at {
namespace cuda {

cudaDeviceProp *getDeviceProperties(c10::DeviceIndex device) {
  static std::array<cudaDeviceProp, C10_COMPILE_TIME_MAX_GPUS> properties;
  static std::mutex mutex;
  c10::DeviceIndex index = deviceOrCurrent(device).index();
  std::lock_guard<std::mutex> lock(mutex);
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties.at(static_cast<size_t>(index)), index));
  return &properties.at(static_cast<size_t>(index));
}

bool canDeviceAccessPeer(c10::DeviceIndex device, c10::DeviceIndex peer) {
  int can = 0;
  C10_CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, peer));
  return can != 0;
}

c10::Allocator *getCUDADeviceAllocator() { return c10::cuda::CUDACachingAllocator::get(); }

} // namespace cuda
} // namespace at
