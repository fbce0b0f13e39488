/// Stand-in for c10/cuda/CUDAStream.h of PyTorch. Streams have identities, but their work is finished when
/// a call returns.
#pragma once

#include <c10/core/Stream.h>
#include <c10/cuda/CUDAFunctions.h>

#include <functional>
#include <ostream>
#include <tuple>

namespace c10 {
namespace cuda {

class CUDAStream {
public:
  enum Unchecked { UNCHECKED };

  /// Throws c10::Error when `stream` is not of a CUDA device.
  explicit CUDAStream(Stream stream) : stream_(stream) {
    TORCH_CHECK(stream_.device_type() == DeviceType::CUDA, "expected a CUDA stream, but got one of ",
                stream_.device());
  }
  CUDAStream(Unchecked, Stream stream) : stream_(stream) {}

  bool operator==(const CUDAStream &other) const noexcept { return stream_ == other.stream_; }
  bool operator!=(const CUDAStream &other) const noexcept { return !(*this == other); }

  operator cudaStream_t() const { return stream(); }
  operator Stream() const { return stream_; }

  DeviceType device_type() const { return DeviceType::CUDA; }
  DeviceIndex device_index() const { return stream_.device_index(); }
  Device device() const { return stream_.device(); }
  StreamId id() const { return stream_.id(); }
  bool query() const { return true; }
  void synchronize() const {}
  int priority() const { return 0; }
  /// The least and the greatest priority; streams with one are not served differently.
  static std::tuple<int, int> priority_range() { return {0, -1}; }

  /// Null for the default stream, as in CUDA.
  cudaStream_t stream() const { auto i = static_cast<uint64_t>(stream_.id()); if (i && !(i >> 40)) i |= (static_cast<uint64_t>(stream_.device_index()) + 1) << 40; return reinterpret_cast<cudaStream_t>(i); }
  Stream unwrap() const { return stream_; }

private:
  Stream stream_;
};

// A negative device means the current one.
C10_CUDA_API CUDAStream getStreamFromPool(bool isHighPriority = false, DeviceIndex device = -1);
C10_CUDA_API CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device);
C10_CUDA_API CUDAStream getDefaultCUDAStream(DeviceIndex device = -1);
C10_CUDA_API CUDAStream getCurrentCUDAStream(DeviceIndex device = -1);

/// For this thread; does not change the current device.
C10_CUDA_API void setCurrentCUDAStream(CUDAStream stream);

inline std::ostream &operator<<(std::ostream &out, const CUDAStream &stream) {
  return out << stream.unwrap();
}

} // namespace cuda
} // namespace c10

namespace std {
template <> struct hash<c10::cuda::CUDAStream> {
  size_t operator()(c10::cuda::CUDAStream stream) const noexcept {
    return std::hash<c10::Stream>{}(stream.unwrap());
  }
};
} // namespace std
