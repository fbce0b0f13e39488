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

/// std::bind, std::mem_fn, std::async, std::invoke, std::visit, thread pools ...
std::optional<Outcomes> modelCallables(Call &call);
/// A std::thread starts with its callable; nothing when `type` is no such class.
std::optional<Outcomes> constructThread(Call &call, Name type, const std::vector<Argument> &args);
/// operator() and assignment of std::function and its kin.
std::optional<Outcomes> modelFunctionObject(Call &call, std::string_view method);

} // namespace devicetidy
