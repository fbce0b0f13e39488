//===- Determinism.h - operators whose results vary on GPUs -----*- C++ -*-===//
//
// Operators that have no deterministic kernel for CUDA, and refuse to run under
// torch::globalContext().setDeterministicAlgorithms(true), torch.use_deterministic_algorithms(True) in
// Python.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

namespace vcuda {

struct NonDeterministic {
  const char *op;   ///< without the overload
  const char *name; ///< what CUDA's kernel calls itself in the error
  /// Whether it holds for these arguments; nullptr: for all.
  bool (*holds)(const c10::FunctionSchema &schema, const c10::IValue *values);
};

/// nullptr for an operator that is deterministic.
const NonDeterministic *nonDeterministic(const c10::FunctionSchema &schema);

/// Throws, or warns, as the program has asked for.
void alertIfNotDeterministic(const NonDeterministic &known, const c10::FunctionSchema &schema,
                             const c10::IValue *values);

} // namespace vcuda
