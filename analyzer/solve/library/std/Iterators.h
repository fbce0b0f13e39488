//===- Iterators.h - what iterators of the library do -----------*- C++ -*-===//
//
// Whatever classes a standard library makes its iterators of, they are positions here (domain/Positions.h):
// addresses of elements, of entries of maps, reversed ones, and inserters.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// `iterator` moved by `by` elements; unknown when that is not known.
Value advanced(Call &call, const Value &iterator, Term by);
/// How many steps lead from `first` to `last`; an unknown number when they are in two sequences.
Value distanceBetween(Call &call, const Value &first, const Value &last);
/// The place of the element at `iterator`.
Outcomes standingAt(Call &call, const Value &iterator);
/// Writes `value` where `iterator` stands, or inserts it.
Outcomes putAt(Call &call, const Value &iterator, const Value &value);
/// The number of the element at `iterator` from the begin of its container; none when it is not known.
std::optional<std::int64_t> ordinalOf(const Machine &machine, const Row &row, const Value &iterator);

Value inserterAt(const Address &container, const Value &position);
/// `end` is "back" or "front".
Value inserterAtEnd(const Address &container, Name end);

/// A comparison of two pairs, tuples or texts; nothing when it is not known.
std::optional<Value> compareRecords(const Call &call, Name op, const Value &a, const Value &b);

/// Calls method `name` of the library object at `object`.
Outcomes callMethod(Call &call, const Address &object, std::string_view name, const std::vector<Value> &args);

} // namespace devicetidy
