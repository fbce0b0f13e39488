//===- Words.h - the words for the standard library -------------*- C++ -*-===//
//
// What each word of a row does is written beside its function, in the file named here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Library.h"

namespace devicetidy {

Words sequenceWords();  ///< Primitives.cpp: values, sequences, positions
Words functionWords();  ///< FunctionPrimitives.cpp: functions and operators
Words mapWords();       ///< MapPrimitives.cpp: maps
Words objectWords();    ///< Objects.cpp: what all objects can do
Words textWords();      ///< Strings.cpp: texts
Words pointerWords();   ///< Pointers.cpp: smart pointers, what they lead to
Words ownershipWords(); ///< Ownership.cpp: who keeps an object alive
Words tupleWords();     ///< Tuples.cpp: optionals, pairs, tuples
Words variantWords();   ///< Variants.cpp: std::variant, std::any
Words callableWords();  ///< Callables.cpp: what runs a function that it is given
Words containerWords(); ///< Containers.cpp: lists
Words dictWords();      ///< Dicts.cpp: torch::OrderedDict
Words iteratorWords();  ///< Iterators.cpp: operators of iterators
Words rangeWords();     ///< Ranges.cpp: std::ranges

} // namespace devicetidy
