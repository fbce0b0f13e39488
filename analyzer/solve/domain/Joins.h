//===- Joins.h - one value for what several ways have left ------*- C++ -*-===//
#pragma once

#include "analyzer/solve/domain/Value.h"

#include <map>
#include <utility>

namespace devicetidy {

/// What stands for two numbers that differ, of one join of two states: what was equal in both stays so.
using JoinedNumbers = std::map<std::pair<Term, Term>, Value>;

/// Least upper bound: what differs becomes unknown; lists of different lengths become summaries. `phi` names
/// the place of the join, so that a scalar that differs becomes one stable symbol.
Value joinValues(const Value &a, const Value &b, Term phi, JoinedNumbers &numbers);
/// The same of two values that are joined alone.
Value joinValues(const Value &a, const Value &b, Term phi);

/// Has the list `outer` all elements that the list `inner` may have?
bool holdsAll(const Value &outer, const Value &inner);

/// Is nothing left in `a` that a join with `b` would change? Then joinValues(a, b) is `a`, whatever `phi` is.
bool absorbs(const Value &a, const Value &b);

} // namespace devicetidy
