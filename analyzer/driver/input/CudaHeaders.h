//===- CudaHeaders.h - CUDA's headers where there is no CUDA ----*- C++ -*-===//
#pragma once

#include <string>
#include <vector>

namespace devicetidy::driver {

/// The directory with headers that stand in for CUDA's and those of c10_cuda (runtime-shim/cuda-stubs): the
/// one that is installed with the tool, or else that of the sources it was built from. Empty without either.
const std::string &cudaStandIns();

/// Does one of `directories`, of those that every compiler searches, or of those that the environment adds
/// hold CUDA's runtime header? Asks the disk once for each directory.
bool findsCuda(const std::vector<std::string> &directories);

} // namespace devicetidy::driver
