//===- TorchCompat.h - differences between PyTorch's releases ---*- C++ -*-===//
//
// What differs between the releases of PyTorch (1.13, 2.6 and 2.13) for the Python half. Of LibTorch:
// Compat.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Compat.h"

#include <pybind11/pybind11.h>
#include <torch/csrc/Storage.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/exception.h>

#if TORCH_VERSION_MAJOR == 1
#include <torch/csrc/utils/cuda_lazy_init.h>
#else
#include <torch/csrc/utils/device_lazy_init.h>
#endif

namespace vcuda::python {

/// Of a Python object that is a torch.UntypedStorage.
inline c10::Storage storageOf(const pybind11::object &object) {
#if TORCH_VERSION_MAJOR == 1
  TORCH_CHECK_TYPE(PyObject_IsInstance(object.ptr(), THPStorageClass) == 1,
                   "expected a torch.UntypedStorage");
  auto *storage = reinterpret_cast<THPStorage *>(object.ptr())->cdata;
  return c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::unsafe_reclaim_from_nonowning(storage));
#else
  return THPStorage_Unpack(object.ptr());
#endif
}

inline pybind11::object objectOf(c10::intrusive_ptr<c10::StorageImpl> storage) {
#if TORCH_VERSION_MAJOR == 1
  return pybind11::reinterpret_steal<pybind11::object>(THPStorage_New(std::move(storage)));
#else
  return pybind11::reinterpret_steal<pybind11::object>(THPStorage_Wrap(c10::Storage(std::move(storage))));
#endif
}

/// What torch._C tells torch.cuda about a stream.
inline pybind11::object dataOf(c10::Stream stream) {
#if TORCH_VERSION_MAJOR == 1
  return pybind11::int_(stream.pack());
#else
  return pybind11::make_tuple(stream.id(), static_cast<int64_t>(stream.device_index()),
                              static_cast<int64_t>(stream.device_type()));
#endif
}

/// The next use of a device calls torch.cuda._lazy_init() again.
inline void askForInitialization() {
#if TORCH_VERSION_MAJOR == 1
  torch::utils::set_requires_cuda_init(true);
#else
  torch::utils::set_requires_device_init(at::kCUDA, true);
#endif
}

#if TORCH_VERSION_MAJOR == 1
/// A process group had one backend, which it was itself.
using Backend = c10d::ProcessGroup;
using DistributedError = c10::Error;
/// A check of arguments.
#define VCUDA_CHECK_VALUE TORCH_CHECK
/// all_gather() of tensors of several sizes; 1.13 refuses them.
inline constexpr bool kGathersAnySizes = false;
#else
using Backend = c10d::Backend;
using DistributedError = c10::DistBackendError;
#define VCUDA_CHECK_VALUE TORCH_CHECK_VALUE
inline constexpr bool kGathersAnySizes = true;
#endif

/// A backend that another one works for, with what the releases of 2.x added.
class BackendOver : public Backend {
public:
  explicit BackendOver(c10::intrusive_ptr<Backend> other)
      : Backend(other->getRank(), other->getSize()), other_(std::move(other)) {}

  void setSequenceNumberForGroup() override { other_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return other_->getSequenceNumberForGroup(); }
#if TORCH_VERSION_MAJOR > 1
  void startCoalescing() override { startTogether(); }
  c10::intrusive_ptr<c10d::Work> endCoalescing() override { return endTogether(); }
#if TORCH_VERSION_MINOR > 6
  void setTimeout(std::chrono::milliseconds timeout) override { other_->setTimeout(timeout); }
  void abort() override { other_->abort(); }
  void shutdown() override { other_->shutdown(); }
  bool supportsCoalescing() const override { return true; }
#endif
#endif

protected:
  c10::intrusive_ptr<Backend> other_;

private:
  virtual void startTogether() = 0;
  virtual c10::intrusive_ptr<c10d::Work> endTogether() = 0;
};

} // namespace vcuda::python
