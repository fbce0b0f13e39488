/// Stand-in for ATen/cuda/CUDAGeneratorImpl.h of PyTorch: the generators of the virtual GPUs.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/cuda/CUDAFunctions.h>

#include <mutex>
#include <utility>

namespace at {

/// What kernels get of a generator (a header of its own in PyTorch 2). There are no kernels on virtual GPUs.
struct PhiloxCudaState {
  PhiloxCudaState() = default;
  PhiloxCudaState(uint64_t seed, uint64_t offset) : seed_(seed), offset_(offset) {}
  uint64_t seed_ = 0, offset_ = 0;
};

/// What check_generator() and Generator::get() need to name a generator of a GPU. Its random numbers are made
/// by the virtual GPUs; the Philox state, which only kernels read, is not there.
struct CUDAGeneratorImpl : public c10::GeneratorImpl {
  using c10::GeneratorImpl::GeneratorImpl;
  static c10::DeviceType device_type() { return c10::kCUDA; }

  // Nothing implements these: they are for reading sources that launch kernels.
  PhiloxCudaState philox_cuda_state(uint64_t increment);
  std::pair<uint64_t, uint64_t> philox_engine_inputs(uint64_t increment);
};

namespace cuda {
namespace detail {

/// A negative device means the current one.
inline const Generator &getDefaultCUDAGenerator(c10::DeviceIndex device = -1) {
  c10::DeviceIndex index = device < 0 ? c10::cuda::current_device() : device;
  return globalContext().defaultGenerator(c10::Device(c10::kCUDA, index));
}

/// A generator of its own, with the seed that every new generator has.
inline Generator createCUDAGenerator(c10::DeviceIndex device = -1) {
  Generator generator = getDefaultCUDAGenerator(device).clone();
  generator.set_current_seed(c10::default_rng_seed_val);
  return generator;
}

} // namespace detail
} // namespace cuda
} // namespace at
