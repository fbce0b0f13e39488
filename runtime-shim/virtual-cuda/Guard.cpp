// DeviceGuardImplInterface for CUDA. Work is synchronous, so events and waits have nothing to do.
#include "Devices.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace vcuda {
namespace {

class GuardImpl final : public c10::impl::DeviceGuardImplInterface {
public:
  c10::DeviceType type() const override { return c10::kCUDA; }

  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device previous = getDevice();
    setDevice(device);
    return previous;
  }

  c10::Device getDevice() const override {
    return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(currentDevice()));
  }

  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.is_cuda(), "expected a CUDA device, but got ", device);
    setCurrentDevice(device.index());
  }

  void uncheckedSetDevice(c10::Device device) const noexcept override {
    setCurrentDeviceUnchecked(device.index());
  }

  c10::Stream getStream(c10::Device device) const noexcept override { return currentStream(device.index()); }

  c10::Stream getDefaultStream(c10::Device device) const override {
    int index = device.has_index() ? device.index() : currentDevice();
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index)));
  }

  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*isHighPriority*/) const override {
    return streamFromPool(device.index());
  }

  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return exchangeCurrentStream(stream);
  }

  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(vcuda::deviceCount());
  }

  void record(void **event, const c10::Stream &, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    // A non-null handle marks the event as recorded; nothing owns it.
    if (event && !*event)
      *event = const_cast<GuardImpl *>(this);
  }
  void block(void *, const c10::Stream &) const override {}
  bool queryEvent(void *) const override { return true; }
  bool queryStream(const c10::Stream &) const override { return true; }
  void synchronizeStream(const c10::Stream &) const override {}
};

C10_REGISTER_GUARD_IMPL(CUDA, GuardImpl);

} // namespace
} // namespace vcuda
