//===- VirtualCuda.h - where libvirtual_cuda.so is --------------*- C++ -*-===//
//
// The library for virtual GPUs and for records; the parts for each release of LibTorch lie beside it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Environment.h"

#include <string>

namespace devicerun {

/// The path of libvirtual_cuda.so: DEVICE_TIDY_VIRTUAL_CUDA if it is set, else the one that belongs to the
/// device-run at `executable`, installed or in its build folder. Throws RunError(ExitUsage) that lists where
/// it was looked for.
std::string findVirtualCuda(const Environment &environment, const std::string &executable);

} // namespace devicerun
