//===- Leaves.h - what an object holds, before and after a call -*- C++ -*-===//
//
// A call of a method changes where some of an object's tensors are. What it does not change, although it
// belongs with them, has stayed behind: its device becomes a former one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Row.h"

#include <map>
#include <set>

namespace devicetidy {

/// What an object holds, itself and by what it leads to, by the way there.
using Leaves = std::map<std::uint64_t, Value>;

/// Of the object at `object`, which holds `state`.
Leaves leavesOf(const Row &row, const Value &state, RootId object);
/// Nothing is there yet that a method could make.
bool isBlank(const Value &value);
/// Marks in `after` the devices that something of the object is still on, though the object has moved.
void markFormer(const Leaves &before, const Leaves &now, Row &after);
/// Adds the devices from which the object has gone back to the CPU, in part.
void addLeft(const Leaves &before, const Leaves &now, std::set<Term> &left);
/// How far an object is from one that somebody has set up for a device: what it has not made yet, then what
/// is on a device that the program fixes.
std::pair<std::size_t, std::size_t> incompleteness(const Leaves &leaves);

} // namespace devicetidy
