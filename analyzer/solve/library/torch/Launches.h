//===- Launches.h - kernels and the memory they get -------------*- C++ -*-===//
//
// A kernel gets pointers into tensors, as arguments or in structs that it gets by value.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace devicetidy {

struct Call;

/// The memory of tensors that a kernel gets, itself or in a record of parameters, must be on the current GPU.
void meetLaunch(Call &call);

} // namespace devicetidy
