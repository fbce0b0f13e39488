//===- Compat.h - differences between LibTorch releases ---------*- C++ -*-===//
//
// Everything that differs between the LibTorch releases this library is built for (1.13, 2.6 and 2.13) lives
// here: names, signatures, and the few rules that changed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/api/include/torch/version.h>

#include <type_traits>

#if TORCH_VERSION_MAJOR == 1
#include <ATen/SparseTensorUtils.h>
#define VCUDA_ALLOCATE_CONST const
#define VCUDA_SINCE_2
#else
#include <ATen/native/SparseTensorUtils.h>
#define VCUDA_ALLOCATE_CONST
// Marks what is an override from 2.0 on and a function of its own before.
#define VCUDA_SINCE_2 override
#endif

namespace vcuda {

#if TORCH_VERSION_MAJOR == 1
inline constexpr const char *kMethodPrefix = "wrapper_";
inline constexpr const char *kRulesVersion = "1.13.1";
/// torch.where moved 0-dim operands to the other operands' device only from 2.0 on.
inline constexpr bool kWhereMovesScalars = false;
/// The text of CUDA's out-of-memory error was reworded in 2.2.
inline constexpr bool kLongOutOfMemoryText = false;
inline constexpr const char *kHistogramName = "_histc_cuda";
#else
inline constexpr const char *kMethodPrefix = "wrapper_CUDA_";
// The operator list that is next: those of 2.6 and 2.13 differ by a few operators.
inline constexpr const char *kRulesVersion = TORCH_VERSION_MINOR < 10 ? "2.6.0" : "2.13.0";
inline constexpr bool kWhereMovesScalars = true;
inline constexpr bool kLongOutOfMemoryText = true;
inline constexpr const char *kHistogramName = "_histc_cuda with floating point input";
#endif

/// Storage: 2.x tells reading from writing.
inline void *dataOf(c10::StorageImpl &storage) {
#if TORCH_VERSION_MAJOR == 1
  return storage.data();
#else
  return storage._mutable_data_ptr_no_checks().get();
#endif
}

inline c10::DataPtr &dataPtrOf(c10::StorageImpl &storage) {
#if TORCH_VERSION_MAJOR == 1
  return storage.data_ptr();
#else
  return storage._mutable_data_ptr_no_checks();
#endif
}

/// An allocator whose make() is its allocate().
class AllocatorBase : public c10::Allocator {
public:
  c10::DataPtr allocate(size_t bytes) VCUDA_ALLOCATE_CONST final { return make(bytes); }
  virtual void copy_data(void *target, const void *source, size_t bytes) const VCUDA_SINCE_2;

private:
  virtual c10::DataPtr make(size_t bytes) const = 0;
};

/// The counter of CUDA's generators, which a CPU engine does not have.
class GeneratorBase : public c10::GeneratorImpl {
public:
  using c10::GeneratorImpl::GeneratorImpl;
  virtual void set_offset(uint64_t offset) VCUDA_SINCE_2 { offset_ = offset; }
  virtual uint64_t get_offset() const VCUDA_SINCE_2 { return offset_; }

private:
  uint64_t offset_ = 0;
};

/// What 2.x added to device guards. The functions of events are the ones the guard defines anyway.
class GuardBase : public c10::impl::DeviceGuardImplInterface {
public:
  virtual c10::Stream getNewStream(c10::Device device, int /*priority*/ = 0) const VCUDA_SINCE_2 {
    return getStreamFromGlobalPool(device, /*isHighPriority=*/false);
  }
  virtual void synchronizeEvent(void * /*event*/) const VCUDA_SINCE_2 {}
  virtual void synchronizeDevice(const c10::DeviceIndex /*device*/) const VCUDA_SINCE_2 {}
  virtual double elapsedTime(void *first, void *second, const c10::DeviceIndex) const VCUDA_SINCE_2 {
    return millisecondsBetween(first, second);
  }

private:
  virtual double millisecondsBetween(void *first, void *second) const = 0;
};

/// Later releases of 2.x also ask whether there is a CUDA library at all.
template <typename Interface, typename = void> class BuiltHooks : public Interface {};
template <typename Interface>
class BuiltHooks<Interface, std::void_t<decltype(&Interface::isBuilt)>> : public Interface {
public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return this->hasCUDA(); }
};

/// The questions ATen asks "the CUDA library", under the names both releases share.
class HooksBase : public BuiltHooks<at::CUDAHooksInterface> {
public:
  virtual int count() const = 0;
  virtual int current() const = 0;
  virtual bool pinned(const void *data) const = 0;
  virtual const at::Generator &generatorOf(int device) const = 0;
  virtual at::Generator newGenerator(int device) const = 0;
  virtual int exchange(int device) const = 0;

  int getNumGPUs() const override { return count(); }
#if TORCH_VERSION_MAJOR == 1
  void initCUDA() const override {}
  int64_t current_device() const override { return current(); }
  bool hasPrimaryContext(int64_t device) const override { return device >= 0 && device < count(); }
  void deviceSynchronize(int64_t) const override {}
  bool isPinnedPtr(void *data) const override { return pinned(data); }
  const at::Generator &getDefaultCUDAGenerator(at::DeviceIndex device) const override {
    return generatorOf(device);
  }
#else
  void init() const override {}
  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(count()); }
  c10::DeviceIndex current_device() const override { return static_cast<c10::DeviceIndex>(current()); }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(current()); }
  void setCurrentDevice(c10::DeviceIndex device) const override { exchange(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return static_cast<c10::DeviceIndex>(exchange(device));
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return static_cast<c10::DeviceIndex>(exchange(device));
  }
  bool hasPrimaryContext(c10::DeviceIndex device) const override { return device >= 0 && device < count(); }
  void deviceSynchronize(c10::DeviceIndex) const override {}
  bool isPinnedPtr(const void *data) const override { return pinned(data); }
  const at::Generator &getDefaultGenerator(c10::DeviceIndex device = -1) const override {
    return generatorOf(device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device = -1) const override { return newGenerator(device); }
#endif
};

} // namespace vcuda
