//===- Entries.h - where the analysis of a program starts -------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"
#include "analyzer/solve/engine/Usage.h"

namespace devicetidy {

/// Runs the program from its entries: main, functions without a caller, then whatever no analysis has
/// entered. Parameters and, for methods, the object are decided outside; the object is what its constructors
/// make of it.
void runEntries(Machine &machine, const Usage &usage);

} // namespace devicetidy
