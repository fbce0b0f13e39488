//===- Defaults.h - parameters that nothing was given for ------*- C++ -*-===//
#pragma once

#include "analyzer/solve/library/python/Python.h"

namespace devicetidy::python {

/// What a caller has passed on with * and **: all of it, or what stands under a key.
Value passedOn(const Call &call, const Row &row, const Value &spread, const Value &key);

/// What ** may bring for a parameter that has a default: numbers and texts are decided outside, all else is
/// as the default says, which is known where the function begins. And whether a value is that.
Value perhapsGiven(const Call &call, const Row &row, const Value &spread, std::string_view name);
bool isPerhaps(const Value &value);

} // namespace devicetidy::python
