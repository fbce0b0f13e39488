#include "Devices.h"

#include "ErrorRecords.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>

namespace vcuda {
namespace {

constexpr int kStreamsPerPool = 32;

thread_local int current = 0;

// Stream ids of this thread, per device; 0 is the default stream.
std::array<c10::StreamId, kMaxDevices> &threadStreams() {
  thread_local std::array<c10::StreamId, kMaxDevices> ids{};
  return ids;
}

c10::Stream makeStream(int device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)), id);
}

// CUDA_VISIBLE_DEVICES, which may have been set long ago and for real GPUs.
std::string visibleList() {
  const char *list = std::getenv("CUDA_VISIBLE_DEVICES");
  return list ? c10::str("with CUDA_VISIBLE_DEVICES='", list, "'; ") : "";
}

void checkOrdinal(int index) {
  if (index < deviceCount())
    return;
  int count = deviceCount();
  std::string there = count == 0 ? "there are no virtual devices"
                      : count == 1
                          ? "there is one virtual device, cuda:0"
                          : c10::str("there are ", count, " virtual devices, cuda:0 to cuda:", count - 1);
  std::string text = c10::str("CUDA error: invalid device ordinal\nthe program asked for cuda:", index,
                              ", but ", there, " (", visibleList(), "device-run --virtual-gpus ", index + 1,
                              " or VIRTUAL_GPUS=", index + 1, " makes more)");
  recordInvalidOrdinal(text);
  TORCH_CHECK(false, text);
}

int indexOrCurrent(int device) { return device < 0 ? current : device; }

} // namespace

int currentDevice() { return current; }

void setCurrentDevice(int index) {
  if (index < 0)
    return;
  checkOrdinal(index);
  current = index;
}

void setCurrentDeviceUnchecked(int index) noexcept {
  if (index >= 0)
    current = index;
}

c10::Device withIndex(c10::Device device) {
  int index = indexOrCurrent(device.index());
  checkOrdinal(index);
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
}

c10::Stream currentStream(int device) {
  int index = indexOrCurrent(device);
  return makeStream(index, threadStreams()[static_cast<size_t>(index)]);
}

c10::Stream exchangeCurrentStream(c10::Stream stream) {
  int index = indexOrCurrent(stream.device_index());
  c10::Stream previous = currentStream(index);
  threadStreams()[static_cast<size_t>(index)] = stream.id();
  return previous;
}

c10::Stream streamFromPool(int device) {
  static std::array<std::atomic<int>, kMaxDevices> next{};
  int index = indexOrCurrent(device);
  int slot = next[static_cast<size_t>(index)].fetch_add(1) % kStreamsPerPool;
  return makeStream(index, slot + 1);
}

} // namespace vcuda
