//===- Mistakes.h - which conflicts are one mistake -------------*- C++ -*-===//
//
// An operation fails in many ways for one reason, and callers of one function make mistakes of their own that
// fail at one line.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"
#include "analyzer/solve/solution/Solution.h"

#include <vector>

namespace devicetidy {

/// Keeps one conflict per operation and mistake, the surest, then one per root cause in a function: a tensor
/// left behind is reported where it first meets another device. Sets Conflict::cause.
void keepMistakes(const Program &program, std::vector<Conflict> &conflicts);

} // namespace devicetidy
