//===- Archives.h - what is saved and loaded --------------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// A call without a model gets the stream at operand `i`: what it holds may be something else afterwards.
void forgetSaved(Call &call, std::size_t i);

} // namespace devicetidy
