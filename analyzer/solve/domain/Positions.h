//===- Positions.h - iterators and pointers into sequences ------*- C++ -*-===//
//
// An iterator, and a pointer into an array, is the address of the element it stands at: its last step is the
// number of the element. Arithmetic on iterators is arithmetic on that number. The end of a range is the
// address of the element after the last. A reverse iterator is a record that holds its base. An iterator of a
// map is the address of the entry's field (library/std/Maps.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Memory.h"

namespace devicetidy {

/// Is `value` the address of an element of a sequence?
bool isPosition(const Value &value);
/// `value` as a position: an array stands for the position of its first element.
Value asPosition(const Memory &memory, const Row &row, const Value &value);
/// The sequence that `position`, the address of an element, is in.
Address sequenceOf(const Address &position);
/// The number of the element that `position` stands at.
Term numberAt(const Address &position);
/// `position` moved by `by` elements.
Address moved(const Address &position, Term by);
/// Do both stand in one sequence?
bool areInOneSequence(const Address &a, const Address &b);

/// A reverse iterator whose base is `base`.
Value reversed(Value base);
bool isReversed(const Value &value);
/// What reversed() was given.
Value baseOf(const Value &reversed);

/// What writes to a sequence by putting new elements into it.
bool isInserter(const Value &value);
/// Is `value` something that can stand at an element of a sequence: a position, a reverse iterator, an
/// inserter?
bool isIterator(const Value &value);
enum class Standing { Entry, Each, Some };

/// The entry that an iterator stands at, and how it has come there.
struct MapPlace {
  Name key;
  Standing standing = Standing::Entry;
};

MapPlace placeOf(Name field);
Name fieldOf(const MapPlace &place);

/// The map that `value` is the address of an entry of, or of the end; null when it is no such address.
Value mapAround(const Memory &memory, const Row &row, const Value &value);

/// Stands for the number at `element`, which has no address of its own in the program (std::vector<bool>).
Value elementProxy(const Address &element);
bool isElementProxy(const Value &value);

/// `address` after `count` elements of `sequence` were added in front of number `at` (or taken away from `at`
/// on, when `count` is negative). Invalid when its element is gone.
Address shifted(const Address &address, const Address &sequence, std::int64_t at, std::int64_t count);
/// `address` with the part that leads to `from` replaced by `to`; itself when it does not go through `from`.
Address moveBelow(const Address &address, const Address &from, const Address &to);
/// Does `address` lead through `whole`, or is it `whole` itself?
bool leadsThrough(const Address &address, const Address &whole);

} // namespace devicetidy
