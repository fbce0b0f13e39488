//===- ClassBodies.h - what a class runs for its attributes -----*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

#include <vector>

namespace devicetidy {

/// Is it run once, before there are objects?
bool isClassBody(const Function &function);
/// The functions that give an object the attributes of its class, those of the classes behind it first. Only
/// Python has them.
std::vector<const Function *> classBodies(const Machine &machine, Name className);

bool isOrDerivesFrom(const Program &program, Name derived, Name base);

/// Is one of the two classes a base of the other?
bool areRelated(const Program &program, Name a, Name b);

} // namespace devicetidy
