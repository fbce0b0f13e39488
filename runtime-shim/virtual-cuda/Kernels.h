//===- Kernels.h - kernels of their own -------------------------*- C++ -*-===//
//
// Kernels that cannot be "the CPU kernel on the same bytes".
//
//===----------------------------------------------------------------------===//
#pragma once

#include <torch/library.h>

namespace vcuda {

void registerMemoryKernels(torch::Library &library);
void registerRecurrentKernels(torch::Library &library);
void registerGpuOnlyKernels(torch::Library &library);
void registerDropoutKernel(torch::Library &library);
void registerSyncBatchNorm(torch::Library &library);

/// For the device and for its autograd: the operator is made of others, which autograd knows.
void registerAttention(torch::Library &library);

/// Runs the CPU kernel of every operator that has a CUDA kernel, behind that kernel's device checks.
void registerCpuBackedKernels(torch::Library &library);

/// The same for sparse tensors; `library` registers for SparseCUDA.
void registerSparseKernels(torch::Library &library);

} // namespace vcuda
