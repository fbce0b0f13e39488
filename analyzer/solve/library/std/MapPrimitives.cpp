//===- MapPrimitives.cpp - what model bodies ask of maps ---===//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/library/std/Iterators.h"
#include "analyzer/solve/library/std/Maps.h"
#include "analyzer/solve/library/std/Words.h"

#include <algorithm>

namespace devicetidy {
namespace {

Value unknownNumber(const Call &call) { return scalarValue(call.machine.freshScalar(call)); }

Value truthOf(bool value) { return scalarValue(intTerm(value)); }

Value endOf(const Address &where) { return addressValue(where.field(hidden::mapEnd)); }

bool isMap(const Call &call, std::size_t i) {
  return is(call.arg(i), ValueKind::Record) && call.addressOf(i).valid();
}

// A map of which nothing is known, in a method of its own, has unknown entries: what is put into it is.
void openUnknown(Call &call) {
  const Fact *site = call.frame.site;
  const Address where = call.addressOf(0);
  if (!is(call.arg(0), ValueKind::Unknown) || !site || !site->hasObject || !where.valid() ||
      !(call.frame.self == where))
    return;
  const Name type = site->operands[0].type;
  if (call.machine.types.classOf(type) == TypeClass::Map)
    call.machine.memory.write(
        call.row, where, recordValue(type, {{hidden::anyKey, mapEntry(hidden::anyKey, unknownValue())}}));
}

// The entry that `value` stands at when it is an iterator of the map at `where`.
std::optional<MapPlace> placeIn(const Address &where, const Value &value) {
  if (is(value, ValueKind::Address) && value->address.path && !value->address.path->index &&
      sequenceOf(value->address) == where)
    return placeOf(value->address.path->field);
  return std::nullopt;
}

// An iterator at the first of `keys`, the keys of `map` from some place on.
Value standingAtFirst(const Types &types, const Address &where, const Value &map,
                      const std::vector<Name> &keys, Standing standing) {
  if (keys.empty())
    return endOf(where);
  return addressValue(
      where.field(fieldOf({keys.front(), hasOrder(types, map) ? Standing::Entry : standing})));
}

// What a look-up of `key` gives in the rows where it is there, and in those where it is not.
template <typename Found, typename Missing>
Outcomes lookUp(Call &call, const Value &key, Found found, Missing missing) {
  const Address where = call.addressOf(0);
  const Value map = call.arg(0);
  const std::optional<bool> isThere = holdsKey(call.row, map, key);
  Outcomes outcomes;
  if (isThere.value_or(true)) {
    Row row = call.row;
    call.machine.memory.write(row, where, asKeySays(row, map, key));
    const Value result = found(row);
    outcomes.push_back({std::move(row), result});
  }
  if (!isThere.value_or(false))
    outcomes.push_back({call.row, missing()});
  return outcomes;
}

Outcomes hasEntry(Call &call) {
  if (!isMap(call, 0) || call.arg(0)->origin)
    return call.done(unknownNumber(call));
  return lookUp(call, call.arg(1), [](Row &) { return truthOf(true); }, [] { return truthOf(false); });
}

Outcomes findEntry(Call &call) {
  if (!isMap(call, 0))
    return call.done(unknownValue());
  const Address where = call.addressOf(0);
  const Value key = call.arg(1);
  auto found = [&](Row &row) {
    return addressValue(entryOf(call, row, where, call.machine.memory.read(row, where), key));
  };
  return lookUp(call, key, found, [&] { return endOf(where); });
}

// The place of what is kept under a key.
Outcomes heldUnder(Call &call) {
  openUnknown(call);
  if (!isMap(call, 0))
    return call.done(unknownValue());
  return call.done(
      addressValue(entryOf(call, call.row, call.addressOf(0), call.arg(0), call.arg(1)).field("second")));
}

// The same, where it is an error that there is nothing.
Outcomes heldAt(Call &call) {
  const bool isMissing = isMap(call, 0) && holdsKey(call.row, call.arg(0), call.arg(1)) == false;
  return isMissing ? Outcomes() : heldUnder(call);
}

Outcomes insertEntry(Call &call, bool replaces) {
  if (!call.addressOf(0).valid())
    return call.done(unknownValue());
  openUnknown(call);
  return insertUnder(call, call.addressOf(0), call.arg(1), call.arg(2), replaces);
}

// Any entry may be gone: what is left is what was there, of keys that are not known.
void eraseAny(Call &call, const Address &where, const Value &map) {
  ValueData rest = *map;
  const Value held = heldByAny(map);
  rest.fields = {{hidden::anyKey, mapEntry(hidden::anyKey, held ? held : unknownValue())}};
  call.machine.memory.write(call.row, where, makeValue(std::move(rest)));
}

// Takes away what is kept under a key: how many entries.
Outcomes eraseKey(Call &call) {
  const Address where = call.addressOf(0);
  const Value map = call.arg(0);
  if (!isMap(call, 0))
    return call.done(unknownNumber(call));
  const std::optional<Name> field = keyField(call.row, call.arg(1));
  const std::optional<bool> isThere = holdsKey(call.row, map, call.arg(1));
  const Value count = isThere ? truthOf(*isThere) : unknownNumber(call);
  if (field && field != hidden::deviceKey) {
    ValueData rest = *map;
    rest.fields.erase(*field);
    call.machine.memory.write(call.row, where, makeValue(std::move(rest)));
  } else if (!map->fields.empty()) {
    eraseAny(call, where, map);
  }
  return call.done(count);
}

// Takes away the entry at an iterator: the iterator after it.
Outcomes eraseAt(Call &call) {
  const Address where = call.addressOf(0);
  const Value map = call.arg(0);
  const auto place = placeIn(where, call.arg(1));
  if (!isMap(call, 0))
    return call.done(unknownValue());
  const bool isKnown = place && place->standing != Standing::Some && map->fields.count(place->key) &&
                       place->key != hidden::anyKey && place->key != hidden::deviceKey;
  if (!isKnown) {
    if (!map->fields.empty())
      eraseAny(call, where, map);
    return call.done(unknownValue());
  }
  const bool isOrdered = hasOrder(call.machine.types, map), isWhole = isWholeMap(map);
  std::vector<Name> keys = mapKeys(call.machine.types, map);
  ValueData data = *map;
  data.fields.erase(place->key);
  const Value rest = makeValue(std::move(data));
  call.machine.memory.write(call.row, where, rest);
  if (!isWhole || (!isOrdered && place->standing != Standing::Each))
    return call.done(unknownValue());
  keys.erase(keys.begin(), std::find(keys.begin(), keys.end(), place->key) + 1);
  return call.done(standingAtFirst(call.machine.types, where, rest, keys, place->standing));
}

Outcomes firstEntry(Call &call) {
  const Address where = call.addressOf(0);
  const Value map = call.arg(0);
  if (!isMap(call, 0) || map->origin)
    return call.done(unknownValue());
  if (isWholeMap(map))
    return call.done(
        standingAtFirst(call.machine.types, where, map, mapKeys(call.machine.types, map), Standing::Some));
  return call.done(map->fields.empty() ? endOf(where) : addressValue(anyEntryOf(call, call.row, where, map)));
}

Outcomes endEntry(Call &call) {
  return call.done(call.addressOf(0).valid() ? endOf(call.addressOf(0)) : unknownValue());
}

Outcomes numberOfEntries(Call &call) {
  const Value map = call.arg(0);
  return call.done(isWholeMap(map) ? scalarValue(intTerm(static_cast<std::int64_t>(map->fields.size())))
                                   : unknownNumber(call));
}

// Empties a map, of which nothing may be known but what the user's call says of its type.
Outcomes clearEntries(Call &call) {
  const Value map = call.arg(0);
  const Fact *site = call.frame.site;
  Name type = map->type;
  if (!is(map, ValueKind::Record) && site && site->hasObject)
    type = site->operands[0].type;
  call.machine.memory.write(call.row, call.addressOf(0),
                            call.machine.types.classOf(type) == TypeClass::Map ? recordValue(type)
                                                                               : unknownValue());
  return call.done(unknownValue());
}

// The place of the entry at an iterator of a body that comes to every entry once.
Outcomes eachEntry(Call &call) {
  const Value at = call.arg(0);
  if (!mapAround(call.machine.memory, call.row, at))
    return standingAt(call, at);
  const Address place = at->address;
  return standingAt(
      call, addressValue(sequenceOf(place).field(fieldOf({placeOf(place.path->field).key, Standing::Each}))));
}

// An iterator at the entry that a body has found, whatever the order.
Outcomes foundEntry(Call &call) {
  const Value at = call.arg(0);
  if (!mapAround(call.machine.memory, call.row, at))
    return call.done(at);
  return call.done(addressValue(sequenceOf(at->address).field(placeOf(at->address.path->field).key)));
}

} // namespace

Words mapWords() {
  return {{},
          {
              {"is_map",
               [](Call &call) {
                 const Value value = call.arg(0);
                 return call.done(truthOf(
                     is(value, ValueKind::Record) &&
                     (value->type.empty() || call.machine.types.classOf(value->type) == TypeClass::Map)));
               }},
              {"is_in",
               [](Call &call) {
                 return call.done(truthOf(placeIn(call.addressOf(0), call.arg(1)).has_value()));
               }},
              {"is_iterator",
               [](Call &call) {
                 const Value value = call.arg(0);
                 return call.done(truthOf(isIterator(value) ||
                                          mapAround(call.machine.memory, call.row, value) != nullptr));
               }},
              {"is_in_any_order",
               [](Call &call) {
                 const Value at = call.arg(0);
                 return call.done(truthOf(mapAround(call.machine.memory, call.row, at) &&
                                          placeOf(at->address.path->field).standing != Standing::Entry));
               }},
              {"has_entry", hasEntry},
              {"find_entry", findEntry},
              {"held_under", heldUnder},
              {"held_at", heldAt},
              {"insert_entry", [](Call &call) { return insertEntry(call, false); }},
              {"set_entry", [](Call &call) { return insertEntry(call, true); }},
              {"erase_key", eraseKey},
              {"erase_entry", eraseAt},
              {"first_entry", firstEntry},
              {"end_entry", endEntry},
              {"entries", numberOfEntries},
              {"clear_entries", clearEntries},
              {"each", eachEntry},
              {"found", foundEntry},
          },
          {}};
}

} // namespace devicetidy
