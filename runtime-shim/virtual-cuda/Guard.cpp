// DeviceGuardImplInterface for CUDA. Work is finished when a call returns, so events only remember when
// they were recorded and nothing ever waits.
#include "Compat.h"
#include "Devices.h"

#include <chrono>

namespace vcuda {
namespace {

using Clock = std::chrono::steady_clock;

struct RecordedEvent {
  Clock::time_point when;
};

class GuardImpl final : public GuardBase {
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

  void record(void **event, const c10::Stream &stream, const c10::DeviceIndex device,
              const c10::EventFlag) const override {
    TORCH_CHECK(device == -1 || device == stream.device_index(), "Event device index ",
                static_cast<int>(device), " does not match recording stream's device index ",
                static_cast<int>(stream.device_index()), ".");
    if (!event)
      return;
    if (!*event)
      *event = new RecordedEvent();
    static_cast<RecordedEvent *>(*event)->when = Clock::now();
  }
  void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<RecordedEvent *>(event);
  }
  void block(void *, const c10::Stream &) const override {}
  bool queryEvent(void *) const override { return true; }
  bool queryStream(const c10::Stream &) const override { return true; }
  void synchronizeStream(const c10::Stream &) const override {}

private:
  double millisecondsBetween(void *first, void *second) const override {
    TORCH_CHECK(first && second, "Both events must be recorded before calculating elapsed time.");
    std::chrono::duration<double, std::milli> between =
        static_cast<RecordedEvent *>(second)->when - static_cast<RecordedEvent *>(first)->when;
    return between.count();
  }
};

C10_REGISTER_GUARD_IMPL(CUDA, GuardImpl);

} // namespace
} // namespace vcuda
