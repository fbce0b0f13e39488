// DistributedDataParallel measures its passes with the timer of the device; work is done when a call returns,
// so the clock of the host is that of the device.
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

namespace vcuda::python {
namespace {

class HostTimer final : public c10d::Timer {
public:
  explicit HostTimer(c10::Device) {}

  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const auto from = getTimestamp(start), to = getTimestamp(end);
    if (!from || !to || *from > *to)
      return std::nullopt;
    return *to - *from;
  }
};

} // namespace
} // namespace vcuda::python

namespace c10d {
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kCUDA, vcuda::python::HostTimer)
} // namespace c10d
