/// Stand-in for c10/cuda/CUDACachingAllocator.h of PyTorch: memory of the virtual GPUs and what is counted
/// about it. Nothing is cached, so what is reserved is what is allocated. Sizes are in bytes.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAStream.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace c10 {
namespace cuda {
namespace CUDACachingAllocator {

struct Stat {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;
  int64_t freed = 0;
};

enum struct StatType : uint64_t { AGGREGATE = 0, SMALL_POOL = 1, LARGE_POOL = 2, NUM_TYPES = 3 };

using StatArray = std::array<Stat, static_cast<size_t>(StatType::NUM_TYPES)>;

/// Only the AGGREGATE entries are counted.
struct DeviceStats {
  StatArray allocation;
  StatArray allocated_bytes;
  StatArray reserved_bytes;
  StatArray active_bytes;
  int64_t num_alloc_retries = 0;
  int64_t num_ooms = 0;
};

/// The allocator of the current device. Throws c10::Error when there are no virtual GPUs.
C10_CUDA_API Allocator *get();

/// Throws c10::OutOfMemoryError beyond the memory that the devices were given.
C10_CUDA_API void *raw_alloc(size_t bytes);
inline void *raw_alloc_with_stream(size_t bytes, cudaStream_t) { return raw_alloc(bytes); }
C10_CUDA_API void raw_delete(void *pointer);

C10_CUDA_API DeviceStats getDeviceStats(DeviceIndex device);
C10_CUDA_API void resetPeakStats(DeviceIndex device);
inline void resetAccumulatedStats(DeviceIndex) {}

/// The memory of virtual GPUs is set from outside the program; the fraction is only checked.
inline void setMemoryFraction(double fraction, DeviceIndex) {
  TORCH_CHECK(fraction >= 0 && fraction <= 1, "invalid fraction:", fraction, ". Please set within [0, 1].");
}
inline void emptyCache() {}
inline void recordStream(const DataPtr &, CUDAStream) {}
inline void init(int /*deviceCount*/) {}

} // namespace CUDACachingAllocator
} // namespace cuda
} // namespace c10
