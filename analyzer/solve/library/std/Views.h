//===- Views.h - spans ------------------------------------------*- C++ -*-===//
//
// A span is a record of the position it begins at and of the number of its elements, which stay where they
// are: what is written through it reaches them. A span from outside is a list of its own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// The view of class `type` of `count` elements from `first` on; unknown when `first` is no position.
Value viewOf(Name type, const Value &first, Term count);
bool isView(const Value &value);
/// Where a view begins.
Address beginOf(const Value &view);
/// The number of its elements.
Term countOf(const Value &view);

} // namespace devicetidy
