//===- Decided.h - answers that have one value ------------------*- C++ -*-===//
//
// What a library function answers may be open (a parameter, a file, the environment) or decided by the
// program, though the analyzer does not compute it. A branch on the first is taken in some run; one on the
// second may never be taken, and is a guess.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// Is the callee a function of the standard library that computes its answer from what it is given (words.csv
/// lists those that ask outside), and is all of that known?
bool isDecided(const Machine &machine, const Call &call);

/// What a call of `callee` returns that a bound keeps from being followed: the program decides it, by the
/// state that `key` stands for.
Value notFollowed(const Types &types, const Function &callee, std::uint64_t key);

} // namespace devicetidy
