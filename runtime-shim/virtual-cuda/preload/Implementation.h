//===- Implementation.h - what the preloaded library loads ------*- C++ -*-===//
//
// libvirtual_cuda.so is preloaded into every process, so it needs no LibTorch. The devices themselves are in
// libvirtual_cuda-MAJOR.MINOR.so, one per release of LibTorch, which it loads when the process has that
// LibTorch. This is what it finds there, under the name virtual_cuda_implementation. With
// VIRTUAL_GPU_RECORDS_ONLY=1 it is libdevice_records-MAJOR.MINOR.so, which has no devices.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Api.h"

namespace vcuda {

struct Implementation {
  // The devices; nullptr where there are none.
  decltype(&virtual_cuda_host_address) hostAddress;
  decltype(&virtual_cuda_device_of) deviceOf;
  decltype(&virtual_cuda_memory) memory;
  decltype(&virtual_cuda_reset_peak) resetPeak;
  decltype(&virtual_cuda_allocate_pinned) allocatePinned;
  decltype(&virtual_cuda_free_pinned) freePinned;
  decltype(&virtual_cuda_is_pinned) isPinned;
  decltype(&virtual_cuda_register_host) registerHost;
  decltype(&virtual_cuda_unregister_host) unregisterHost;

  /// A TORCH_CHECK of `function` fails with `text`; called before the exception is thrown.
  void (*checkFails)(const char *function, const char *text);
  /// torch::from_blob made `tensor`, an at::Tensor.
  void (*blobMade)(const void *tensor);
};

inline constexpr const char *kImplementationName = "virtual_cuda_implementation";

/// What is loaded, or nullptr.
const Implementation *implementation();

} // namespace vcuda
