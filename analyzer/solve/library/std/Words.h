//===- Words.h - the words for the standard library -------------*- C++ -*-===//
//
// What each word of a row does is written beside its function, in the file named here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Library.h"

namespace devicetidy {

Words sequenceWords(); ///< Primitives.cpp: sequences, positions, functions
Words mapWords();      ///< MapPrimitives.cpp: maps
Words objectWords();   ///< Objects.cpp: what all objects can do

} // namespace devicetidy
