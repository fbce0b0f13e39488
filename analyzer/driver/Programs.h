//===- Programs.h - which translation units make up a program ---*- C++ -*-===//
//
// A compile database lists the sources of many programs: executables with a main of their own, tests,
// examples that each define `train()` anew. Linking all of them together would let one program's functions
// stand in for another's.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <vector>

namespace devicetidy::driver {

/// Groups units into programs; each is a sorted list of indices into `units`. Units that can live in one
/// program do. Where they cannot (two mains, two different definitions of one name), each main makes a
/// program with all the units its calls lead to, and what no main reaches makes programs along its calls.
/// Every unit is in at least one program, and every function is the one that counts in at least one program.
std::vector<std::vector<std::size_t>> groupPrograms(const std::vector<Unit> &units);

} // namespace devicetidy::driver
