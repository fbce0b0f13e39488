/// Stand-in for c10/cuda/CUDAGuard.h of PyTorch: RAII for the current device and stream. Each guard takes
/// back what it changed when it is destroyed. Constructors throw c10::Error for a device that is not CUDA or
/// does not exist.
#pragma once

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Optional.h>

#include <vector>

namespace c10 {
namespace cuda {
namespace detail {

inline Device cudaDevice(DeviceIndex index) { return Device(DeviceType::CUDA, index); }

inline Device cudaDevice(Device device) {
  TORCH_CHECK(device.is_cuda(), "expected a CUDA device, but got ", device);
  return device;
}

} // namespace detail

class CUDAGuard {
public:
  explicit CUDAGuard(DeviceIndex index) : guard_(detail::cudaDevice(index)) {}
  explicit CUDAGuard(Device device) : guard_(detail::cudaDevice(device)) {}
  CUDAGuard(const CUDAGuard &) = delete;
  CUDAGuard &operator=(const CUDAGuard &) = delete;

  void set_device(Device device) { guard_.reset_device(detail::cudaDevice(device)); }
  void reset_device(Device device) { guard_.reset_device(detail::cudaDevice(device)); }
  void set_index(DeviceIndex index) { guard_.set_index(index); }
  Device original_device() const { return guard_.original_device(); }
  Device current_device() const { return guard_.current_device(); }

private:
  DeviceGuard guard_;
};

class OptionalCUDAGuard {
public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(optional<Device> device) {
    if (device)
      set_device(*device);
  }
  explicit OptionalCUDAGuard(optional<DeviceIndex> index) {
    if (index)
      set_index(*index);
  }
  OptionalCUDAGuard(const OptionalCUDAGuard &) = delete;
  OptionalCUDAGuard &operator=(const OptionalCUDAGuard &) = delete;

  void set_device(Device device) {
    if (guard_)
      guard_->reset_device(device);
    else
      guard_.emplace(device);
  }
  void reset_device(Device device) { set_device(device); }
  void set_index(DeviceIndex index) { set_device(detail::cudaDevice(index)); }
  optional<Device> original_device() const {
    return guard_ ? optional<Device>(guard_->original_device()) : nullopt;
  }
  optional<Device> current_device() const {
    return guard_ ? optional<Device>(guard_->current_device()) : nullopt;
  }
  void reset() { guard_.reset(); }

private:
  optional<CUDAGuard> guard_;
};

class CUDAStreamGuard {
public:
  /// Makes the stream, and the device it is of, current.
  explicit CUDAStreamGuard(Stream stream) : guard_(CUDAStream(stream).unwrap()) {}
  CUDAStreamGuard(const CUDAStreamGuard &) = delete;
  CUDAStreamGuard &operator=(const CUDAStreamGuard &) = delete;

  void reset_stream(Stream stream) { guard_.reset_stream(CUDAStream(stream).unwrap()); }
  CUDAStream original_stream() const { return CUDAStream(CUDAStream::UNCHECKED, guard_.original_stream()); }
  CUDAStream current_stream() const { return CUDAStream(CUDAStream::UNCHECKED, guard_.current_stream()); }
  Device current_device() const { return guard_.current_device(); }
  Device original_device() const { return guard_.original_device(); }

private:
  StreamGuard guard_;
};

class OptionalCUDAStreamGuard {
public:
  OptionalCUDAStreamGuard() = default;
  explicit OptionalCUDAStreamGuard(Stream stream) { reset_stream(stream); }
  explicit OptionalCUDAStreamGuard(optional<Stream> stream) {
    if (stream)
      reset_stream(*stream);
  }
  OptionalCUDAStreamGuard(const OptionalCUDAStreamGuard &) = delete;
  OptionalCUDAStreamGuard &operator=(const OptionalCUDAStreamGuard &) = delete;

  void reset_stream(Stream stream) {
    if (guard_)
      guard_->reset_stream(stream);
    else
      guard_.emplace(stream);
  }
  void reset() { guard_.reset(); }

private:
  optional<CUDAStreamGuard> guard_;
};

/// Makes several streams current, one per device.
class CUDAMultiStreamGuard {
public:
  explicit CUDAMultiStreamGuard(ArrayRef<CUDAStream> streams) {
    for (const CUDAStream &stream : streams) {
      previous_.push_back(getCurrentCUDAStream(stream.device_index()));
      setCurrentCUDAStream(stream);
    }
  }
  ~CUDAMultiStreamGuard() {
    for (auto stream = previous_.rbegin(); stream != previous_.rend(); ++stream)
      setCurrentCUDAStream(*stream);
  }
  CUDAMultiStreamGuard(const CUDAMultiStreamGuard &) = delete;
  CUDAMultiStreamGuard &operator=(const CUDAMultiStreamGuard &) = delete;

private:
  std::vector<CUDAStream> previous_;
};

} // namespace cuda
} // namespace c10
