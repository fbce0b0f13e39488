//===- CudaHeaders.h - CUDA headers for machines without CUDA ---*- C++ -*-===//
//
// Finds the replacement headers for CUDA, and whether a compile command has the real ones.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace devicetidy::driver {

/// The directory with replacements for the headers of CUDA and c10_cuda (runtime-shim/cuda-stubs): the
/// one that is installed with the tool, or else that of the sources it was built from. Empty without either.
const std::string &cudaStandIns();

/// Does one of `directories`, of those that every compiler searches, or of those that the environment adds
/// hold CUDA's runtime header? Checks each directory on disk once.
bool findsCuda(const std::vector<std::string> &directories);

/// Does `directory` hold headers that the stand-ins replace: CUDA's, its device libraries', or LibTorch's of
/// c10_cuda?
bool hasStandIns(const std::string &directory);

} // namespace devicetidy::driver
