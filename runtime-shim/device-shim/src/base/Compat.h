//===- Compat.h - differences between LibTorch releases ---------*- C++ -*-===//
//
// Everything that differs between the LibTorch releases the library is built for: 1.13, 2.6, 2.11 and 2.13.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <torch/version.h>

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif
#ifdef USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <torch/optim/optimizer.h>

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>
#include <type_traits>

#define DEVICE_SHIM_TORCH_AT_LEAST(major, minor)                                                             \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

namespace device_shim::compat {

// From 2.0 on the classes with the collectives derive from Backend, and ProcessGroup dispatches to them.
#if TORCH_VERSION_MAJOR >= 2
using Collectives = c10d::Backend;
#else
using Collectives = c10d::ProcessGroup;
#endif

inline c10d::TCPStoreOptions storeOptions(uint16_t port, bool isServer, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = isServer;
  options.waitWorkers = false;
  options.timeout = timeout;
#if DEVICE_SHIM_TORCH_AT_LEAST(2, 4)
  // libuv is the default from 2.4 on, but distributions build LibTorch without it.
  options.useLibUV = false;
#endif
  return options;
}

#ifdef USE_C10D_NCCL
inline c10::intrusive_ptr<Collectives> makeNccl(const c10::intrusive_ptr<c10d::Store> &store, int rank,
                                                int size, std::chrono::milliseconds timeout) {
#if DEVICE_SHIM_TORCH_AT_LEAST(2, 0) && !DEVICE_SHIM_TORCH_AT_LEAST(2, 8)
  // Memory that is marked as used by NCCL's stream is not free until that stream has passed, which the host
  // does not wait for: gathered stages would pile up. From 2.8 on the group holds tensors instead, until
  // wait().
  setenv("TORCH_NCCL_AVOID_RECORD_STREAMS", "1", /*overwrite=*/0);
#endif
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
}
#endif

// Ends a group of NCCL when all ranks do; Gloo's need nothing. Before 2.6 shutdown() aborted, or was not
// there.
inline void shutDown(Collectives &group) {
#if defined(USE_C10D_NCCL) && DEVICE_SHIM_TORCH_AT_LEAST(2, 6)
  static_cast<c10d::ProcessGroupNCCL &>(group).shutdown();
#else
  (void)group;
#endif
}

// The key under which an optimizer keeps the state of a parameter: its address, as text before 2.1.
template <typename Map> typename Map::key_type stateKey(const at::Tensor &parameter) {
  void *address = parameter.unsafeGetTensorImpl();
  if constexpr (std::is_same_v<typename Map::key_type, std::string>) {
    std::ostringstream text;
    text << address;
    return text.str();
  } else {
    return address;
  }
}

// torch::cuda::set_device() does not exist, and c10::cuda needs CUDA's headers.
inline void makeCurrent(at::Device device) {
  if (device.is_cuda())
    c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

// On which operations of this thread on `device` run, and waiting for it on the host.
inline c10::Stream currentStream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}
inline void synchronize(const c10::Stream &stream) {
  c10::impl::VirtualGuardImpl(stream.device_type()).synchronizeStream(stream);
}

} // namespace device_shim::compat
