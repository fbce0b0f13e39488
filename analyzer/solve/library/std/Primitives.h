//===- Primitives.h - what model bodies ask of the interpreter --*- C++ -*-===//
//
// The functions of analyzer/models/bodies/dt.h. Each does nothing but forget what it may change where it is
// given something that is not known.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

#include <map>

namespace devicetidy {

/// An algorithm of std::ranges is that of std from the begin to the end of each container; nothing for
/// others.
std::optional<Outcomes> modelRangesAlgorithm(Call &call);

/// What a function object of the library (std::plus) gives for the arguments of `call`; nothing when `name`
/// is none.
std::optional<Outcomes> applyNamedOperator(Call &call, Name name);

/// An operator of the program on an iterator, a pointer or a reverse iterator of the library, whatever its
/// class; nothing when the first operand is none.
std::optional<Outcomes> modelIterator(Call &call);

} // namespace devicetidy
