//===- Maps.cpp - how maps are kept ---===//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/std/Maps.h"

#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/Joins.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>
#include <cstdlib>

namespace devicetidy {

namespace {

const Name firstPart("first"), secondPart("second");

// What is looked up under an unknown key may be kept by GPU, under one that is made of a device by
// device: where it is, is up to the key.
Value whereKeySays(const Value &value, const std::optional<Name> &key) {
  if (is(value, ValueKind::Tensor) && !value->address.valid()) {
    if (key == hidden::deviceKey)
      return tensorValue(Placement::unknown(), value->rank, value->history, value->count);
    return value->placement.kind == PlacementKind::Cuda
               ? tensorValue(Placement::cuda(applyTerm(op::indexOf, {symbolTerm("a key")})), value->rank,
                             value->history, value->count)
               : value;
  }
  if (value->fields.empty() && value->elements.empty() && value->summary.empty())
    return value;
  ValueData result = *value;
  for (auto &[name, field] : result.fields)
    field = whereKeySays(field, key);
  for (std::vector<Value> *part : {&result.elements, &result.summary})
    for (Value &element : *part)
      element = whereKeySays(element, key);
  return makeValue(std::move(result));
}

// Does key `a` come before key `b`? Nothing when that is not known.
std::optional<bool> isBefore(const Types &types, const Value &a, const Value &b) {
  if (is(a, ValueKind::Scalar) && is(b, ValueKind::Scalar)) {
    const auto left = textOf(a->term), right = textOf(b->term);
    if (left && right)
      return left->view() < right->view();
    const auto number = constantOf(a->term), other = constantOf(b->term);
    return number && other ? std::optional<bool>(*number < *other) : std::nullopt;
  }
  const TypeClass kind = types.classOf(a->type);
  const bool arePairs = is(a, ValueKind::Record) && is(b, ValueKind::Record) &&
                        (kind == TypeClass::Pair || kind == TypeClass::Tuple);
  if (!arePairs || a->fields.size() != b->fields.size())
    return std::nullopt;
  for (const auto &[name, part] : a->fields) {
    const auto other = b->fields.find(name);
    const auto less = other == b->fields.end() ? std::nullopt : isBefore(types, part, other->second);
    const auto greater = less ? isBefore(types, other->second, part) : std::nullopt;
    if (!greater || *less || *greater)
      return greater ? less : std::nullopt;
  }
  return false;
}

Value keyIn(const Value &map, Name field) {
  const Value &entry = map->fields.at(field);
  const auto first = entry->fields.find(firstPart);
  return first == entry->fields.end() ? unknownValue() : first->second;
}

enum class Order { Unknown, Ascending, Descending };

// How the type of `map` orders its keys.
Order orderOf(const Types &types, const Value &map) {
  const Type *type = types.program.type(map->type);
  const models::Effect *ordered = type ? models::effect(type->templateName.view(), "ordered_by") : nullptr;
  if (!ordered)
    return Order::Unknown;
  const auto comparator = static_cast<std::size_t>(ordered->args[0].number);
  if (comparator >= type->args.size())
    return Order::Ascending;
  const models::Effect *said = models::effect(types.templateOf(type->args[comparator]).view(), "operator");
  const Name op = said ? Name(said->detail()) : Name();
  return op == op::less ? Order::Ascending : op == op::greater ? Order::Descending : Order::Unknown;
}

// The fields of `map` in the order of their keys; nothing when that is not known.
std::optional<std::vector<Name>> inOrder(const Types &types, const Value &map, std::vector<Name> fields) {
  const Order order = orderOf(types, map);
  if (order == Order::Unknown && fields.size() > 1)
    return std::nullopt;
  bool isKnown = true;
  std::sort(fields.begin(), fields.end(), [&](Name a, Name b) {
    const auto less = isBefore(types, keyIn(map, a), keyIn(map, b));
    isKnown = isKnown && less;
    return less.value_or(a < b);
  });
  if (!isKnown)
    return std::nullopt;
  if (order == Order::Descending)
    std::reverse(fields.begin(), fields.end());
  return fields;
}

// The keys of a map all of whose keys are known, in no particular order.
std::vector<Name> fieldsOf(const Value &map) {
  std::vector<Name> fields;
  if (map->origin)
    return fields;
  for (const auto &[name, entry] : map->fields) {
    if (name == hidden::anyKey || name == hidden::deviceKey || !entry->fields.count(secondPart))
      return {};
    fields.push_back(name);
  }
  return fields;
}

// A value of `type` of which nothing is known.
Value freshValue(const Machine &machine, Name type) {
  const Type *known = machine.program.type(type);
  switch (machine.types.classOf(type)) {
  case TypeClass::Scalar:
    return known && known->kind == TypeKind::Record ? unknownValue() : scalarValue(intTerm(0));
  case TypeClass::String:
    return scalarValue(textTerm(""));
  case TypeClass::List:
    return known && !known->numbers.empty() ? unknownValue() : machine.defaultObject(type);
  case TypeClass::Map:
  case TypeClass::Record:
    return machine.defaultObject(type);
  default:
    return nullValue();
  }
}

// What a caller has put there, under `key` or one that is not known.
Value heldOutside(Machine &machine, const Value &map, Name key) {
  return machine.memory.symbolic(machine.types.inner(map->type),
                                 applyTerm(op::entry, {map->origin, textTerm(key)}),
                                 Name(map->function.str() + key.str()));
}

// What an entry holds that was not there, as far as `map` tells.
Value heldByOther(Machine &machine, const Value &map, const std::optional<Name> &key) {
  if (!key)
    return unknownValue();
  if (map->origin && key != hidden::deviceKey)
    return heldOutside(machine, map, *key);
  const auto any = map->fields.find(hidden::anyKey);
  if (any != map->fields.end() && any->second->fields.count(secondPart))
    return any->second->fields.at(secondPart);
  const Value held =
      key == hidden::deviceKey || map->fields.count(hidden::deviceKey) ? heldByAny(map) : nullptr;
  return held ? whereKeySays(held, hidden::deviceKey) : freshValue(machine, machine.types.inner(map->type));
}

} // namespace

bool hasKnownKeys(const Value &map) {
  return !map->fields.count(hidden::anyKey) && !map->fields.count(hidden::deviceKey);
}

bool isWholeMap(const Value &map) {
  return is(map, ValueKind::Record) && !map->origin && fieldsOf(map).size() == map->fields.size();
}

bool hasOrder(const Types &types, const Value &map) {
  return isWholeMap(map) && inOrder(types, map, fieldsOf(map)).has_value();
}

std::vector<Name> mapKeys(const Types &types, const Value &map) {
  const std::vector<Name> fields = fieldsOf(map);
  return inOrder(types, map, fields).value_or(fields);
}

Value heldByAny(const Value &map) {
  Value held;
  for (const auto &[name, entry] : map->fields)
    if (auto second = entry->fields.find(secondPart); second != entry->fields.end())
      held = held ? joinValues(held, second->second, symbolTerm("map")) : second->second;
  return held;
}

Value asKeySays(const Row &row, const Value &map, const Value &key) {
  const std::optional<Name> field = keyField(row, key);
  return field ? map : whereKeySays(map, field);
}

Address anyEntryOf(Call &call, Row &row, const Address &where, const Value &map) {
  const Name field = hidden::anyKey;
  if (map->fields.size() > map->fields.count(field)) {
    // What is done to an entry with an unknown key may be done to any: from here on they are one.
    const Value held = heldByAny(map);
    ValueData whole = *map;
    whole.fields = {{field, mapEntry(field, held ? held : unknownValue())}};
    call.machine.memory.write(row, where, makeValue(std::move(whole)));
  } else if (!map->fields.count(field)) {
    const Value held = map->origin ? heldOutside(call.machine, map, "[..]") : unknownValue();
    call.machine.memory.write(row, where, withField(map, field, mapEntry(field, held)));
  }
  return where.field(field);
}

Address entryOf(Call &call, Row &row, const Address &where, const Value &map, const Value &key) {
  const std::optional<Name> field = keyField(row, key);
  if (!field)
    return anyEntryOf(call, row, where, map);
  if (!map->fields.count(*field))
    call.machine.memory.write(
        row, where, withField(map, *field, mapEntry(*field, heldByOther(call.machine, map, field), key)));
  else if (field == hidden::deviceKey) // of another device, maybe
    call.machine.memory.write(row, where,
                              withField(map, *field, whereKeySays(map->fields.at(*field), field)));
  return where.field(*field);
}

std::optional<bool> holdsKey(const Row &row, const Value &map, const Value &key) {
  if (!is(map, ValueKind::Record) || map->origin)
    return std::nullopt;
  const std::optional<Name> field = keyField(row, key);
  if (map->fields.empty())
    return false;
  if (!field || field == hidden::deviceKey || (!map->fields.count(*field) && !hasKnownKeys(map)))
    return std::nullopt;
  return map->fields.count(*field) != 0;
}

Outcomes insertUnder(Call &call, const Address &where, const Value &key, const Value &value, bool replaces) {
  const Value map = call.machine.memory.read(call.row, where);
  const std::optional<Name> known = keyField(call.row, key);
  const Name field = known ? *known : hidden::anyKey;
  if (!is(map, ValueKind::Record))
    return call.done(unknownValue());
  const std::optional<bool> isThere = holdsKey(call.row, map, key);
  if (known && known != hidden::deviceKey && map->fields.count(field) && !replaces) {
    // An entry that is there stays as it is.
  } else if (!known && !map->fields.empty()) { // any entry may have been replaced
    const Address entry = anyEntryOf(call, call.row, where, map).field(secondPart);
    call.machine.memory.write(
        call.row, entry, joinValues(call.machine.memory.read(call.row, entry), value, symbolTerm("map")));
  } else {
    call.machine.memory.write(call.row, where, withField(map, field, mapEntry(field, value, key)));
  }
  const Value isNew = isThere ? scalarValue(intTerm(!*isThere)) : scalarValue(call.machine.freshScalar(call));
  return call.done(
      recordValue("std::pair", {{firstPart, addressValue(where.field(field))}, {secondPart, isNew}}));
}

std::optional<Address> anyEntry(Call &call, const Address &where, const Value &map) {
  if (hasKnownKeys(map) || map->origin)
    return std::nullopt;
  return anyEntryOf(call, call.row, where, map);
}

// A map whose entries are changed one by one through a loop that is not unrolled: nothing is known of them
// after it.
void forgetEntries(Machine &machine, Row &row, const Address &where, const Value &map) {
  Value forgotten = map;
  for (const auto &[name, entry] : map->fields)
    forgotten = withField(forgotten, name, mapEntry(name, unknownValue()));
  machine.memory.write(row, where, forgotten);
}

} // namespace devicetidy
