//===- ErrorReport.h - a device error in words ------------------*- C++ -*-===//
//
// Explains the last device error of a rank: which tensors met, where they were created, and what to
// change.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "records/Frame.h"
#include "records/Records.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace devicerun {

/// What an error's arguments have in common, and which one does not.
struct OddArgument {
  std::size_t index = 0;     ///< in ErrorRecord::arguments
  std::string expected;      ///< the device it should be on
  std::size_t reference = 0; ///< an argument that is on that device
};

/// The argument to move: one on the CPU among those on GPUs, else one that differs from most others, else
/// the later of two. Nothing when all arguments are on one device.
std::optional<OddArgument> findOddArgument(const ErrorRecord &error);

/// What ended the process of `error` instead of that error, which the program caught: another exception, or a
/// signal (from `status`, as waitpid gives it) that no exception ends in. Empty where nothing says so.
std::string otherEnd(const ErrorRecord &error, const std::vector<UncaughtException> &uncaught, int status);

/// The failing operation, every argument with its device and the line that made it, and the line to change.
/// Several lines, each with a line end.
std::string explainError(const ErrorRecord &error, FrameResolver &resolver);

} // namespace devicerun
