//===- Launches.h - kernels and the memory they get -------------*- C++ -*-===//
//
// A kernel gets pointers into tensors, as arguments or in structs that it gets by value.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace devicetidy {

struct Call;

/// A function of the program whose code nobody has seen: one that gets a stream is taken to launch kernels on
/// it.
void meetUnseen(Call &call);
/// The memory of tensors that a kernel gets, itself or in a record of parameters, must be on the current GPU.
void meetLaunch(Call &call);

} // namespace devicetidy
