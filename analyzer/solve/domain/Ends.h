//===- Ends.h - the known ends of a list of unknown length ------*- C++ -*-===//
//
// What a program puts in front of or behind the elements of a list it does not know is known: the first few,
// and the last few. Both are lists in hidden fields of the list. Its summary covers them, too, for questions
// about any element.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Value.h"

namespace devicetidy {

/// How many elements of `list` are known at its begin, and at its end.
std::size_t knownAtBegin(const Value &list);
std::size_t knownAtEnd(const Value &list);

/// `list`, which is no list of known length, with `element` behind or in front of its other elements;
/// whatever it was before, it is a list then. At most `limit` different elements are told apart.
Value withLast(const Value &list, Name type, Value element, std::size_t limit = bounds::listAlternatives);
Value prepended(const Value &list, Value element);
/// `list` with elements like `value`, an unknown number of them, in front of element `at`: what is known at
/// either end stays there.
Value withSome(const Value &list, Term at, const Value &value);
/// `list`, empty where it is none, with an unknown number of elements like `value` behind its other elements:
/// what is known at its begin stays there.
Value withSomeLast(const Value &list, const Value &value, std::size_t limit = bounds::listAlternatives);
/// The elements of `list`, in order: those known at its begin, what those between may be, those known at its
/// end.
struct ListParts {
  std::vector<Value> begin, between, end;
};
ListParts partsOf(const Value &list);
/// `joined`, which is `a` or `b`, with the ends that are the same objects in both.
Value withCommonEnds(const Value &a, const Value &b, const Value &joined);
/// `list` without the one element at `number`, counted from either end; null when it is not known.
Value withoutEnd(const Value &list, Term number, std::optional<std::int64_t> count);

/// `index` as a number from the end of `list`: 1 is the last element, 0 the place behind it. None when it is
/// not counted from there.
std::optional<std::int64_t> numberFromEnd(Term index, const Value &list);
/// The element at `index` when it is one of the known ends; null otherwise.
Value elementOfEnds(const Value &list, Term index);
/// `list` with `element` at `index`, one of the known ends; null when it is none.
Value withElementOfEnds(const Value &list, Term index, const Value &element);

} // namespace devicetidy
