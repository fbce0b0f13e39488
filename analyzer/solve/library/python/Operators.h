//===- Operators.h - operators of Python ------------------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/library/python/Python.h"

namespace devicetidy::python {

/// The sign of an operator, which is the last part of its name: "+", "isnot".
std::string sign(const Call &call);
/// Operand `i`, as an argument of what runs the operator.
Argument argumentAt(const Call &call, std::size_t i);
bool isTensor(const Argument &argument);
/// The operator on tensors, one of which may be a number.
Outcomes onTensors(Call &call, const std::string &sign, const Argument &left, const Argument &right);
/// The operator on numbers, texts, lists and what is not known.
Value onValues(Call &call, const std::string &sign, const Value &left, const Value &right);

} // namespace devicetidy::python
