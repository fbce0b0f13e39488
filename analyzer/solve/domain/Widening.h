//===- Widening.h - states that differ in numbers are made one --*- C++ -*-===//
//
// A function that was run for many states costs too much to be run for more of them. What is a number, a text
// or a choice among the values it is given becomes unknown, so that the states left differ in where things
// are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Row.h"

namespace devicetidy {

/// `value` with all scalars in it unknown, those not in lists as what is at `place`; lists of nothing but
/// scalars are unknown as a whole.
Value withoutNumbers(const Value &value, std::uint64_t place);
/// The same for all values of `store`, which is much like another one: `result` is what that came to.
Store withoutNumbers(const Store &store, const Store &like, Store result);

} // namespace devicetidy
