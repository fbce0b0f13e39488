//===- Trace.h - a timeline of operations -----------------------*- C++ -*-===//
//
// What runs when on which device, for a timeline. Does nothing when no trace is asked for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "OpTable.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace vcuda {

/// The run of one operator, from construction to destruction.
class TracedOp {
public:
  TracedOp(const c10::OperatorHandle &op, const c10::IValue *values, c10::Device device);
  ~TracedOp();
  TracedOp(const TracedOp &) = delete;
  TracedOp &operator=(const TracedOp &) = delete;

private:
  const c10::OperatorHandle &op_;
  c10::Device device_;
  double start_ = 0; ///< 0: not traced
  /// Set for copies between devices.
  c10::optional<c10::Device> from_, to_;
  size_t bytes_ = 0;
  std::string operands_; ///< as JSON, before the operator changes them
};

/// Indices may be on the CPU; CUDA copies them to the indexed tensor at every call.
void traceIndexCopies(const c10::OperatorHandle &op, const OpInfo &info, const c10::IValue *values,
                      c10::Device device);

/// Writes the peak memory of every device that was used.
void recordMemory();

} // namespace vcuda
