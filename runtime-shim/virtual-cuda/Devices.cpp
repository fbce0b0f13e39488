#include "Devices.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <string>

namespace vcuda {
namespace {

constexpr int kMaxDevices = 64;
constexpr int kStreamsPerPool = 32;

[[noreturn]] void badSetting(const char *name, const char *value, const char *expected) {
  std::cerr << "virtual-cuda: " << name << "='" << value << "' is not " << expected << "\n";
  std::exit(2);
}

int readDeviceCount() {
  const char *text = std::getenv("VIRTUAL_GPUS");
  if (!text || !*text)
    return 2;
  char *end = nullptr;
  long count = std::strtol(text, &end, 10);
  if (*end || count < 0 || count > kMaxDevices)
    badSetting("VIRTUAL_GPUS", text, "a number from 0 to 64");
  return static_cast<int>(count);
}

size_t readMemoryLimit() {
  const char *text = std::getenv("VIRTUAL_GPU_MEMORY");
  if (!text || !*text)
    return 0;
  char *end = nullptr;
  double amount = std::strtod(text, &end);
  std::string unit = end;
  if (!unit.empty() && (unit.back() == 'B' || unit.back() == 'b'))
    unit.pop_back();
  if (!unit.empty() && unit.back() == 'i')
    unit.pop_back();
  double scale = 0;
  if (unit.empty())
    scale = 1;
  else if (unit == "K" || unit == "k")
    scale = 1024.0;
  else if (unit == "M" || unit == "m")
    scale = 1024.0 * 1024;
  else if (unit == "G" || unit == "g")
    scale = 1024.0 * 1024 * 1024;
  if (end == text || scale == 0 || !(amount > 0))
    badSetting("VIRTUAL_GPU_MEMORY", text, "a size such as 512M or 24G");
  return static_cast<size_t>(amount * scale);
}

thread_local int current = 0;

// Stream ids of this thread, per device; 0 is the default stream.
std::array<c10::StreamId, kMaxDevices> &threadStreams() {
  thread_local std::array<c10::StreamId, kMaxDevices> ids{};
  return ids;
}

c10::Stream makeStream(int device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)), id);
}

void checkOrdinal(int index) {
  TORCH_CHECK(index < deviceCount(), "CUDA error: invalid device ordinal\nthere are ", deviceCount(),
              " virtual devices, cuda:", index, " is not one of them (VIRTUAL_GPUS sets the number)");
}

int indexOrCurrent(int device) { return device < 0 ? current : device; }

} // namespace

int deviceCount() {
  static const int count = readDeviceCount();
  return count;
}

size_t memoryLimit() {
  static const size_t limit = readMemoryLimit();
  return limit;
}

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
