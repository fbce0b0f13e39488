//===- Lists.h - what lists and dictionaries of Python hold -----*- C++ -*-===//
#pragma once

#include "analyzer/solve/library/python/Python.h"

namespace devicetidy::python {

inline const Name listType("std::vector<at::Tensor>");
inline const Name anyEntryField("[?]");     ///< what a dictionary holds under keys that are not known
inline const Name factoryField("@default"); ///< of a defaultdict: what makes an entry that is missing
inline const Name ownerField("@owner");     ///< of _parameters, _buffers, _modules: the module

Value tupleValue(std::vector<Value> elements);
/// A list of unknown length whose elements are among `all`.
Value summaryOf(const std::vector<Value> &all);
/// [*first, *others], of as many others as there may be.
Value listBeginning(const std::vector<Value> &first, const std::vector<Value> &others);
/// A dictionary, or an object of a class that derives from one.
bool isDict(const Value &held);
inline const Name dictField("@dict"); ///< of such an object
/// Is it the field of an entry?
bool isEntry(Name field);
/// The fields of the entries of a dictionary in their order, as far as that is known.
std::vector<Name> fieldsInOrder(const Value &dict);
/// Puts an entry into a dictionary: under a key that is not known it may replace any that is there.
void setEntry(std::map<Name, Value> &entries, Name field, const Value &value);
/// The same under `key`: a text of which the beginning is known replaces none that begins otherwise.
void setEntryUnder(const Row &row, std::map<Name, Value> &entries, const Value &key, const Value &value);
/// Adds the entries of a dictionary; they replace those under the same keys.
void addEntries(const Value &dict, std::map<Name, Value> &entries);
/// The field of the entry under `key`, and the key of a field.
Name fieldOf(const Row &row, const Value &key);
Value keyOf(Name field);
/// Is there an entry with that key? Nothing when the key, or one of those that are there, is not known.
std::optional<bool> hasKey(const Row &row, const Value &dict, const Value &key);
/// Is a device among what the key is made of? Then what is found under it is where that device says.
bool hasDevice(const Value &key);
/// A cache that is kept by device: what was put under a key with the device that it is on is found under such
/// a key on its device. Notes that `value` is put there.
void keepOnDevice(const Row &row, std::map<Name, Value> &entries, const Value &key, const Value &value);
/// What such a key finds; not known where something else was put there.
Value keptOnDevice(const Row &row, const Value &dict, const Value &key);
/// dict[key]: a key that is certainly missing raises KeyError, and a defaultdict makes the entry.
Outcomes entryOfDict(Call &call, const Value &object, const Value &dict, const Value &key,
                     const Operand &written);
/// The elements that a loop or a list() sees; nothing when their number is not known.
std::optional<std::vector<Value>> elementsOf(const Call &call, const Value &value);
/// The number of the element `number` (-1, -2, ..) of a list whose length is not known.
Term fromTheEnd(std::int64_t number);
/// list[slice]: its elements, or any of the list's when the ends are not known.
Value partOf(const Row &row, const Value &list, const Value &slice);
/// What any element may be.
std::vector<Value> alternatives(const Call &call, const Value &value);

} // namespace devicetidy::python
