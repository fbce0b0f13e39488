//===- GpuChoices.h - does a program tell GPUs apart? -----------*- C++ -*-===//
//
// A program with a `main` that names no GPU but "cuda" has all it makes on one, the first. Nothing that works
// on the current GPU fails there.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Types.h"

namespace devicetidy {

/// Does `fact` choose one of several GPUs: by an index, by a text that the program is given, or by making one
/// current?
bool choosesGpu(const Types &types, const Fact &fact);

} // namespace devicetidy
