//===- GivenCalls.h - calls of what a caller passes -------------*- C++ -*-===//
//
// What a function, a module or an object of a caller makes of its arguments is not known; most make tensors
// where they get them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/library/python/Python.h"

namespace devicetidy::python {

/// Does it get a tensor, or something that was moved?
bool takesTensor(const Given &given);
/// What a module of which nothing is known gives: tensors where it gets them, as the operators in it do.
Value madeByModule(Call &call, Row &row, const Given &given);
/// What a call of `callee` gives, a function or module that a caller passes.
Value madeByOpen(Call &call, Row &row, const Value &callee, const Given &given);
/// What is differentiated is a loss, whoever made the function: it compares the two it is given.
void meetLoss(Call &call, Row &row, const Given &given);
/// open.name(..): model.encode(x), model.encoder.forward(x) make things like the module itself.
Outcomes callMethodOfOpen(Call &call, Row row, const Value &open, const std::string &name,
                          const Given &given);

} // namespace devicetidy::python
