//===- Maps.h - how maps are kept -------------------------------*- C++ -*-===//
//
// A map is a record with one field per known key, which holds the entry; the entries of all other keys share
// one field. An iterator is the address of the entry's field. Where the order of the entries is not known (an
// unordered map, a comparator of the program's own), iterators that begin() has given go through them in the
// order of their fields, and have a field name of their own that says so:
//
//   - "some": it stands at an unknown entry. What is done there may be done to any.
//   - "each": it is in the hands of a loop or an algorithm that comes to every entry once; in which order
//   does
//     not matter.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/library/std/Containers.h"

namespace devicetidy {

/// Has every entry of `map` a field of its own?
bool hasKnownKeys(const Value &map);
/// Are the keys of `map` all there is to know of it: has it no other entries?
bool isWholeMap(const Value &map);
/// Is it known in which order the entries stand?
bool hasOrder(const Types &types, const Value &map);

/// The entry under `key` in `map`, which is what is at `where`; made when it is not there. An unknown key:
/// any entry, from here on they are one.
Address entryOf(Call &call, Row &row, const Address &where, const Value &map, const Value &key);
Address anyEntryOf(Call &call, Row &row, const Address &where, const Value &map);
/// What the entries hold, put together; null when there is none.
Value heldByAny(const Value &map);
/// `map` as it is when one of its entries is looked up under `key`, which is not known.
Value asKeySays(const Row &row, const Value &map, const Value &key);

/// Is `key` in `map`? Nothing when that is not known.
std::optional<bool> holdsKey(const Row &row, const Value &map, const Value &key);

/// Puts `value` under `key`, over what is there when it `replaces`: a pair of the place and whether it is
/// new.
Outcomes insertUnder(Call &call, const Address &where, const Value &key, const Value &value, bool replaces);

} // namespace devicetidy
