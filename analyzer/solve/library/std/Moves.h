//===- Moves.h - what a move leaves behind ----------------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// What is left of `value`, an object of `type`, after a move constructor or assignment has taken it: smart
/// pointers are null and vectors are empty, other objects of the library are not known, tensors and what the
/// program's own classes keep besides stay.
Value movedFrom(const Machine &machine, Name type, const Value &value);

/// Empties what the call of a library function or constructor, which left `row`, has moved from.
void emptyMoved(Machine &machine, Frame &frame, const Fact &fact, Row &row);

} // namespace devicetidy
