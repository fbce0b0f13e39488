//===- Devices.h - the current device and stream ----------------*- C++ -*-===//
//
// Which virtual device, and which stream of each, is current on this thread.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Settings.h"

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace vcuda {

int currentDevice();

/// Throws CUDA's "invalid device ordinal" when there is no such device.
void setCurrentDevice(int index);
void setCurrentDeviceUnchecked(int index) noexcept;

/// cuda -> cuda:current; checks the ordinal.
c10::Device withIndex(c10::Device device);

c10::Stream currentStream(int device);
c10::Stream exchangeCurrentStream(c10::Stream stream);
c10::Stream streamFromPool(int device);

/// Sets the current device for a scope.
class DeviceScope {
public:
  explicit DeviceScope(int index) : previous_(currentDevice()) { setCurrentDeviceUnchecked(index); }
  ~DeviceScope() { setCurrentDeviceUnchecked(previous_); }
  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;

private:
  int previous_;
};

} // namespace vcuda
