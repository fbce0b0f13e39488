//===- Api.h - functions for other libraries --------------------*- C++ -*-===//
//
// Functions that other libraries may call while the program runs. They find the functions with dlsym(), so
// that they also work where it is not loaded; keep the names and types. Before LibTorch is in the process
// there is no device memory and no pinned memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>

extern "C" {

/// Loads the virtual GPUs for the LibTorch of this process; happens by itself when a program is linked with
/// LibTorch. nullptr, or why they cannot be used.
const char *virtual_cuda_start(void);

/// Where host code may read and write what a program knows as `pointer`; other pointers are returned as
/// they are. Differs from `pointer` under isolation only.
void *virtual_cuda_host_address(const void *pointer);

/// Device of an address inside live device memory, or -1.
int virtual_cuda_device_of(const void *pointer);

/// Bytes in use, the most that ever were, and the limit (0: none) of a device.
void virtual_cuda_memory(int device, size_t *current, size_t *peak, size_t *limit);
void virtual_cuda_reset_peak(int device);

/// Page-locked host memory; nullptr when there is none left.
void *virtual_cuda_allocate_pinned(size_t bytes);
void virtual_cuda_free_pinned(void *pointer);

/// 1 for addresses inside page-locked memory, else 0.
int virtual_cuda_is_pinned(const void *pointer);

/// Memory of the program counts as page-locked from here on; 0 when some of it does already.
int virtual_cuda_register_host(void *pointer, size_t bytes);
/// 0 when `pointer` is not one that was registered.
int virtual_cuda_unregister_host(void *pointer);
}
