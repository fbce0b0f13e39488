//===- Dictionaries.cpp - what a dictionary holds under a key ---===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/python/Operators.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

constexpr std::size_t mostChosen = 12;  ///< of a table whose entries are all followed
const Name onDeviceField("@on device"); ///< what was put under a key with the device that it is on
const Name devicePart("device"), valuePart("value");

// What any key finds, where all entries are tensors on one device; null otherwise.
Value commonEntry(const Call &call, const Value &dict) {
  Value common = nullptr;
  for (const auto &[name, entry] : dict->fields) {
    if (!isEntry(name))
      continue;
    const Placement place = call.machine.memory.placementOf(call.row, entry);
    if (!is(entry, ValueKind::Tensor) || !place.isKnown() ||
        (common && place != call.machine.memory.placementOf(call.row, common)))
      return nullptr;
    common = entry;
  }
  return common;
}

// A table of functions, objects or settings: somebody outside has chosen one of them, and the same one where
// the key is the same.
Outcomes chosenEntry(const Call &call, const Value &dict, const Value &key) {
  Outcomes outcomes;
  for (const auto &[name, entry] : dict->fields) {
    if (!isEntry(name))
      continue;
    const bool canBeChosen =
        is(entry, ValueKind::Function) || is(entry, ValueKind::Address) || is(entry, ValueKind::List);
    if (!canBeChosen || outcomes.size() == mostChosen)
      return {};
    Row row = call.row;
    const Value same = operatorValue(row, op::equal, {key, keyOf(name)}, true);
    if (!is(same, ValueKind::Scalar) || row.assume(same->term, 1))
      outcomes.push_back({std::move(row), entry});
  }
  return outcomes;
}

// Settings, some of which are grouped.
bool hasDicts(const Call &call, const Value &dict) {
  return std::any_of(dict->fields.begin(), dict->fields.end(), [&](const auto &field) {
    return isEntry(field.first) && is(field.second, ValueKind::Address) && isDict(behind(call, field.second));
  });
}

std::optional<Placement> deviceIn(const Row &row, const Value &key) {
  if (is(key, ValueKind::Device))
    return row.resolve(key->placement);
  for (const Value &each : key->elements)
    if (const auto device = deviceIn(row, each))
      return device;
  return std::nullopt;
}

// `value`, all of which is on device `from`, on `to`; null where it is elsewhere.
Value onOther(const Row &row, const Value &value, const Placement &from, const Placement &to) {
  if (is(value, ValueKind::Tensor) && !value->address.valid() && row.resolve(value->placement) == from)
    return tensorValue(to, value->rank, value->history);
  if (!is(value, ValueKind::List))
    return nullptr;
  ValueData data = *value;
  for (std::vector<Value> *part : {&data.elements, &data.summary})
    for (Value &each : *part)
      if (each = onOther(row, each, from, to); !each)
        return nullptr;
  return makeValue(std::move(data));
}

} // namespace

void keepOnDevice(const Row &row, std::map<Name, Value> &entries, const Value &key, const Value &value) {
  const auto device = deviceIn(row, key);
  if (!device)
    return;
  const bool isThere = onOther(row, value, *device, *device) != nullptr;
  const Value kept =
      isThere ? recordValue("python::kept", {{devicePart, deviceValue(*device)}, {valuePart, value}})
              : unknownValue();
  const auto [before, isNew] = entries.try_emplace(onDeviceField, kept);
  if (!isNew && !isThere)
    before->second = kept;
}

Value keptOnDevice(const Row &row, const Value &dict, const Value &key) {
  const auto kept = dict->fields.find(onDeviceField);
  const auto device = deviceIn(row, key);
  if (kept == dict->fields.end() || !device || !is(kept->second, ValueKind::Record))
    return unknownValue();
  const Value found = onOther(row, kept->second->fields.at(valuePart),
                              row.resolve(kept->second->fields.at(devicePart)->placement), *device);
  return found ? found : unknownValue();
}

Outcomes entryOfDict(Call &call, const Value &object, const Value &dict, const Value &key,
                     const Operand &written) {
  const Name field = fieldOf(call.row, key);
  if (hasDevice(key) || (field == hidden::deviceKey && dict->fields.count(field))) // of another device, maybe
    return call.done(keptOnDevice(call.row, dict, key));
  for (const Name each : {field, anyEntryField})
    if (const auto found = dict->fields.find(each); found != dict->fields.end())
      return call.done(found->second);
  const auto factory = dict->fields.find(factoryField);
  if (const Value common = field == anyEntryField ? commonEntry(call, dict) : nullptr)
    return call.done(common);
  if (Outcomes chosen = field == anyEntryField ? chosenEntry(call, dict, key) : Outcomes(); !chosen.empty())
    return chosen;
  if (factory == dict->fields.end()) {
    const Store *before = entryOf(call.frame).before;
    const bool isMadeHere = is(object, ValueKind::Address) && before && !before->get(object->address.root);
    const bool isEmpty = std::none_of(dict->fields.begin(), dict->fields.end(),
                                      [](const auto &each) { return isEntry(each.first); });
    if (dict->type == dictType && (hasKey(call.row, dict, key) || (isMadeHere && isEmpty)))
      return {};
    return call.done(hasDicts(call, dict) ? somePartOf(object->address) : unknownValue());
  }
  const Value make = factory->second;
  Outcomes made = callValue(call, call.row, make, {}, {make, {}, written.text, &written});
  for (Outcome &each : made) {
    const Value now = call.machine.memory.read(each.row, object->address);
    call.machine.memory.write(each.row, object->address, withField(now, field, each.result));
  }
  return made;
}

} // namespace devicetidy::python
