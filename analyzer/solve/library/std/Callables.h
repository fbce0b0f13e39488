//===- Callables.h - running what a value of the program calls --*- C++ -*-===//
//
// Closures, function pointers, pointers to member functions, std::bind and std::function are values of kind
// Function; library functions and threads that are handed one run it where they are handed it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// Calls `callable` with `args`; a library function that it names is answered by its model. What a closure or
/// function object keeps from call to call is kept at `where`, its own place, when that is given.
Outcomes callValue(Call &call, Row row, const Value &callable, const std::vector<Argument> &args,
                   const Address &where = {});

/// Is `value` one of `type`? Nothing when the value does not tell (unknown, null, a number of unknown kind).
std::optional<bool> isOf(const Types &types, Name type, const Value &value);

} // namespace devicetidy
