//===- LaunchSpelling.h - kernel launches as formatters leave them -*- C++ -*-===//
//
// nvcc takes `f << <grid, block >> >(x)`, which formatters made of `f<<<grid, block>>>(x)` when they knew no
// CUDA. Clang does not.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace devicetidy::frontend {

/// Closes the gaps in the brackets of launches; every other character stays in its place. Is there any?
bool joinLaunches(std::string &text);

} // namespace devicetidy::frontend
