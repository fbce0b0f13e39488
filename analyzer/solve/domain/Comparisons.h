//===- Comparisons.h - what one comparison says of another ------*- C++ -*-===//
//
// `n >= 1` and `n > 0` are one condition on an integer, and `n > 3` has `n > 0` in it. Without that, two
// tests of one number would seem to be independent.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Term.h"

#include <utility>

namespace devicetidy {

/// A comparison of an integer with a constant, in the form `constant < integer` or its negation; other terms
/// as they are.
Term compareIntegers(Term comparison);

/// What `known` (conditions with what they came out as) say of a comparison with a constant or a text;
/// nothing when it may come out either way, or is no such comparison.
std::optional<bool> impliedBy(const std::vector<std::pair<Term, std::int64_t>> &known, Term comparison);

} // namespace devicetidy
