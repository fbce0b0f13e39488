// The clock that PyTorch's profiler asks a CUDA build for. Work is done when a call returns, so the clock of
// the host is that of the devices.
#include "Compat.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>

#if TORCH_VERSION_MAJOR == 1
#include <torch/csrc/profiler/api.h>
#include <torch/csrc/profiler/util.h>
#else
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>
#endif

namespace vcuda::python {
namespace {

#if TORCH_VERSION_MAJOR == 1
using EventPointer = torch::profiler::impl::ProfilerEventStub;
using DeviceNumber = int;
using torch::profiler::impl::getTime;
#else
using EventPointer = torch::profiler::impl::ProfilerVoidEventStub;
using DeviceNumber = c10::DeviceIndex;
using c10::getTime;
#endif

class ProfilerClock final : public torch::profiler::impl::ProfilerStubs {
public:
  void record(DeviceNumber *device, EventPointer *event, int64_t *hostTime) const override {
    const int64_t now = getTime();
    if (device)
      *device = guard().getDevice().index();
    auto time = std::make_shared<int64_t>(now);
    *event = EventPointer(time, reinterpret_cast<EventPointer::element_type *>(time.get()));
    if (hostTime)
      *hostTime = now;
  }

  // In microseconds.
  float elapsed(const EventPointer *first, const EventPointer *second) const override {
    const auto time = [](const EventPointer &event) {
      return *reinterpret_cast<const int64_t *>(event.get());
    };
    return static_cast<float>(time(*second) - time(*first)) / 1000.0F;
  }

  void mark(const char *) const override {}
  void rangePush(const char *) const override {}
  void rangePop() const override {}
  void synchronize() const override {}
  bool enabled() const override { return true; }

  void onEachDevice(std::function<void(int)> use) const override {
    for (int i = 0; i < guard().deviceCount(); ++i)
      use(i);
  }

private:
  static c10::impl::VirtualGuardImpl guard() { return c10::impl::VirtualGuardImpl(c10::kCUDA); }
};

const bool registered = [] {
  static ProfilerClock clock;
  torch::profiler::impl::registerCUDAMethods(&clock);
  return true;
}();

} // namespace
} // namespace vcuda::python
