//===- VirtualGpus.h - the library for virtual GPUs -------------*- C++ -*-===//
//
// Checks that a program can be run with libvirtual_cuda.so, and tells it how.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Environment.h"
#include "launch/Options.h"

#include <string>
#include <vector>

namespace devicerun {

/// Throws RunError(ExitNotExecutable) when `program` is linked with a CUDA build of LibTorch, whose devices
/// cannot be replaced. Programs that load LibTorch later (scripts, dlopen) pass; the library reports an error
/// there.
void checkNotRealCuda(const std::string &program);

/// How many of the `there` virtual GPUs the library shows under CUDA_VISIBLE_DEVICES=`list`.
int visibleVirtualGpus(const std::string &list, int there);

/// The runtime library of a sanitizer that `program` is linked with, as the dynamic loader finds it; empty
/// when there is none, as in programs with a static one.
std::string sanitizerOf(const std::string &program);

/// LD_PRELOAD with `library` in front of what `previous` has, except that the runtimes of sanitizers stay
/// before it: they refuse to start behind another library. `sanitizer` is one that the program needs, or
/// empty.
std::string preloadList(const std::string &library, const std::string &sanitizer,
                        const std::string &previous);

/// A CUDA_VISIBLE_DEVICES that hides all virtual GPUs is taken away. Sets LD_PRELOAD to `preload` and the
/// VIRTUAL_GPU_* variables as CONTRACT.md says, for --explain too. `records` is where the library leaves its
/// records.
void setVirtualGpuVariables(Environment &environment, const Options &options, const std::string &preload,
                            const std::string &records);

} // namespace devicerun
