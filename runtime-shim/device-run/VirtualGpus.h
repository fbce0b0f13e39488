//===- VirtualGpus.h - the library that makes virtual GPUs ------*- C++ -*-===//
#pragma once

#include "Environment.h"
#include "Options.h"

#include <string>
#include <vector>

namespace devicerun {

/// The path of libvirtual_cuda.so: DEVICE_TIDY_VIRTUAL_CUDA if it is set, else the one that belongs to the
/// device-run at `executable`, installed or in its build folder. Throws RunError(ExitUsage) that lists where
/// it was looked for.
std::string findVirtualCuda(const Environment &environment, const std::string &executable);

/// Throws RunError(ExitNotExecutable) when `program` is linked with a CUDA build of LibTorch, whose devices
/// cannot be replaced. Programs that load LibTorch later (scripts, dlopen) pass; the library refuses there.
void checkNotRealCuda(const std::string &program);

/// Sets LD_PRELOAD and the VIRTUAL_GPU_* variables as CONTRACT.md says. `records` is where the library leaves
/// its records.
void setVirtualGpuVariables(Environment &environment, const Options &options, const std::string &library,
                            const std::string &records);

} // namespace devicerun
