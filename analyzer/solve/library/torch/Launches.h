//===- Launches.h - kernels and the memory they get -------------*- C++ -*-===//
//
// A kernel runs on the current GPU, whatever its arguments (CUDA C++ Programming Guide, "Device Selection").
// A pointer into a tensor on the CPU is an illegal access there, and so is one into the memory of another
// GPU unless the two are peers; c10/cuda/CUDAGuard.h is how extensions make a tensor's GPU the current one.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace devicetidy {

struct Call;

/// The memory of tensors that a kernel gets, itself or in a record of parameters, must be on the current GPU.
void meetLaunch(Call &call);

} // namespace devicetidy
