//===- Backends.h - what exchanges tensors between ranks --------*- C++ -*-===//
#pragma once

#include "analyzer/facts/Program.h"

#include <string>

namespace devicetidy {

/// Which kinds of backends of torch.distributed a text names, or a program in its texts.
struct Backends {
  bool forGpus = false; ///< NCCL: takes tensors on GPUs, and no others
  bool forCpu = false;  ///< Gloo, MPI
};

/// "nccl" is for GPUs, "cpu:gloo,cuda:nccl" for both.
Backends backendsIn(std::string text);
Backends backendsOf(const Program &program);

} // namespace devicetidy
