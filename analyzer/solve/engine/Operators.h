//===- Operators.h - built-in operators over values -------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/domain/Row.h"

namespace devicetidy {

/// `op` over one or two values of `row`, as Operator facts name it; unknown when one of them is no number,
/// pointer or device. `areIntegers`: both are integers or enumerators.
Value operatorValue(const Row &row, Name op, const std::vector<Value> &operands, bool areIntegers);

/// The condition under which `value` is what `case label:` names; null when nothing is known of it.
Term caseTerm(const Row &row, const Value &value, std::int64_t label);

/// The operator that the function is an overload of: "<" of "std::operator<"; empty when it is none.
Name overloadedBy(Name function);

} // namespace devicetidy
