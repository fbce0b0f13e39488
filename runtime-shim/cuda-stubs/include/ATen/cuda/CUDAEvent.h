/// Stand-in for ATen/cuda/CUDAEvent.h of PyTorch: an event remembers when it was recorded.
#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include <utility>

namespace at {
namespace cuda {

class CUDAEvent {
public:
  CUDAEvent() = default;
  explicit CUDAEvent(unsigned int flags) : flags_(flags) {}
  ~CUDAEvent() {
    if (event_)
      cudaEventDestroy(event_);
  }
  CUDAEvent(const CUDAEvent &) = delete;
  CUDAEvent &operator=(const CUDAEvent &) = delete;
  CUDAEvent(CUDAEvent &&other) noexcept { *this = std::move(other); }
  CUDAEvent &operator=(CUDAEvent &&other) noexcept {
    std::swap(flags_, other.flags_);
    std::swap(event_, other.event_);
    std::swap(device_, other.device_);
    return *this;
  }

  operator cudaEvent_t() const { return event_; }
  cudaEvent_t event() const { return event_; }
  bool isCreated() const { return event_ != nullptr; }
  c10::DeviceIndex device_index() const { return device_; }
  c10::optional<c10::Device> device() const {
    return event_ ? c10::optional<c10::Device>(c10::Device(c10::kCUDA, device_)) : c10::nullopt;
  }
  bool query() const { return true; }

  void record() { record(getCurrentCUDAStream()); }
  void recordOnce(const CUDAStream &stream) {
    if (!event_)
      record(stream);
  }
  /// Throws c10::Error when the event was recorded on another device before.
  void record(const CUDAStream &stream) {
    if (!event_) {
      device_ = stream.device_index();
      const c10::cuda::CUDAGuard guard(device_);
      C10_CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags_));
    }
    TORCH_CHECK(device_ == stream.device_index(), "Event device ", device_,
                " does not match recording stream's device ", stream.device_index(), ".");
    const c10::cuda::CUDAGuard guard(device_);
    C10_CUDA_CHECK(cudaEventRecord(event_, stream));
  }
  void block(const CUDAStream &stream) {
    if (event_)
      C10_CUDA_CHECK(cudaStreamWaitEvent(stream, event_, 0));
  }
  void synchronize() const {}

  /// Milliseconds. Throws c10::Error when one of the events was never recorded.
  float elapsed_time(const CUDAEvent &other) const {
    TORCH_CHECK(isCreated() && other.isCreated(),
                "Both events must be recorded before calculating elapsed time.");
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, event_, other.event_));
    return milliseconds;
  }

private:
  // Timing is off unless asked for, as in PyTorch.
  unsigned int flags_ = cudaEventDisableTiming;
  cudaEvent_t event_ = nullptr;
  c10::DeviceIndex device_ = -1;
};

} // namespace cuda
} // namespace at
