//===- Containers.h - what the container models share -----------*- C++ -*-===//
#pragma once

#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// Element `index` of the list at `where` (an address when the call gives a reference); one row per
/// alternative when the index is not known.
Outcomes elementAt(Call &call, const Address &where, const Value &list, Term index);
/// The list with its elements in an unknown order.
Value inAnyOrder(const Value &list);
/// What any of `values` may be: what they share.
Value anyOf(const std::vector<Value> &values);
/// `list`, whose type is `type`, with `element` at its end. In a loop that is run once for any iteration, the
/// element stands for one of every iteration.
Value appended(Call &call, const Value &list, Name type, Value element);
/// Number of elements: a constant, or a symbol of the list.
Term sizeTerm(const Value &list, const Address &where);

/// The field a map keeps the entry of `key` in; nothing when the key is not known.
std::optional<Name> keyField(const Row &row, const Value &key);
/// A map's entry as iteration sees it: a pair of key and value. `keyValue` is the key where it is known.
Value mapEntry(Name key, Value value, const Value &keyValue = nullptr);
/// A text that is made of `device`, or of another such text.
Value keyMadeOf(const Value &device);
bool isMadeOfDevice(const Value &text);
/// Keys of a map all of whose keys are known, else nothing; in their order where that is known.
std::vector<Name> mapKeys(const Types &types, const Value &map);
/// Is `value`, what a wrapper or pointer holds, nothing? No answer when that is not known.
std::optional<bool> holdsNothing(const Row &row, const Value &value);
/// Whether it holds anything, as a condition.
Value holdsSomething(const Row &row, const Value &value);
/// The entry that stands for all of a map that has some and whose keys are not all known; from here on they
/// are one.
std::optional<Address> anyEntry(Call &call, const Address &where, const Value &map);
/// Nothing is known of the map's entries any more.
void forgetEntries(Machine &machine, Row &row, const Address &where, const Value &map);

} // namespace devicetidy
