//===- Settings.h - settings from the environment ---------------*- C++ -*-===//
//
// The settings a process starts with. Each is read once; one that makes no sense ends the program.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>

namespace vcuda {

inline constexpr int kMaxDevices = 64;

/// VIRTUAL_GPUS, 2 when unset; of these, what CUDA_VISIBLE_DEVICES leaves.
int deviceCount();

/// VIRTUAL_GPU_MEMORY per device in bytes, or 0 when memory is not limited.
size_t memoryLimit();

/// VIRTUAL_GPU_ISOLATE: host code must not touch device memory.
bool isolated();

/// VIRTUAL_GPU_REPORT: print the peak memory of each device at exit.
bool reportsAtExit();

/// The directories that records go to (see device-run's CONTRACT.md), or nullptr.
const char *errorDirectory();
const char *traceDirectory();
const char *reachedDirectory();

} // namespace vcuda
