//===- Maps.cpp - maps and ordered dictionaries ---===//
//
// A map is a record with one field per known key; the entry of any other key is under one shared field.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/std/Containers.h"

#include <algorithm>
#include <cstdlib>

namespace devicetidy {

namespace {

// What is looked up under a key that nobody knows may be kept by GPU, under one that is made of a device by
// device: where it is, is up to the key.
Value whereKeySays(const Value &value, const std::optional<Name> &key) {
  if (is(value, ValueKind::Tensor) && !value->address.valid()) {
    if (key == deviceKey())
      return tensorValue(Placement::unknown(), value->rank, value->history, value->count);
    return value->placement.kind == PlacementKind::Cuda
               ? tensorValue(Placement::cuda(applyTerm("index of", {symbolTerm("a key")})), value->rank,
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

bool hasKnownKeys(const Value &map) {
  return !map->fields.count(anyKey()) && !map->fields.count(deviceKey());
}

// Does the key in field `a` come before that in field `b`?
bool isBefore(const Value &map, Name a, Name b) {
  constexpr std::string_view number = "[#";
  if (map->type.view().find("std::greater") != std::string_view::npos)
    std::swap(a, b);
  if (startsWith(a.view(), number) && startsWith(b.view(), number))
    return std::strtoll(a.view().data() + number.size(), nullptr, 10) <
           std::strtoll(b.view().data() + number.size(), nullptr, 10);
  return a < b;
}

std::optional<Name> keyOf(const Call &call, std::size_t i) { return keyField(call.row, call.arg(i)); }

// What the entries hold, put together; null when there is none.
Value heldByAny(const Value &map) {
  Value held;
  for (const auto &[name, entry] : map->fields)
    if (auto second = entry->fields.find("second"); second != entry->fields.end())
      held = held ? joinValues(held, second->second, symbolTerm("map")) : second->second;
  return held;
}

// What an entry holds that was not there, as far as `map` tells.
Value heldByOther(const Value &map, const std::optional<Name> &key) {
  if (!key)
    return unknownValue();
  const auto any = map->fields.find(anyKey());
  if (any != map->fields.end() && any->second->fields.count("second"))
    return any->second->fields.at("second");
  const Value held = key == deviceKey() || map->fields.count(deviceKey()) ? heldByAny(map) : nullptr;
  return held ? whereKeySays(held, deviceKey()) : nullValue();
}

// The entry under `key` (empty: any key), made when it is not there; `map` is what is at `where`.
Address entryOf(Call &call, Row &row, const Address &where, const Value &map,
                const std::optional<Name> &key) {
  const Name field = key ? *key : anyKey();
  if (!key && map->fields.size() > map->fields.count(field)) {
    // What is done to an entry nobody can name may be done to any: from here on they are one.
    const Value held = heldByAny(map);
    ValueData whole = *map;
    whole.fields = {{field, mapEntry(field, held ? held : unknownValue())}};
    call.machine.memory.write(row, where, makeValue(std::move(whole)));
    return where.field(field);
  }
  if (!map->fields.count(field))
    call.machine.memory.write(row, where, withField(map, field, mapEntry(field, heldByOther(map, key))));
  else if (key == deviceKey()) // of another device, maybe
    call.machine.memory.write(row, where, withField(map, field, whereKeySays(map->fields.at(field), key)));
  return where.field(field);
}

Outcomes mapElement(Call &call, const std::optional<Name> &key) {
  Address where = call.objectAddress();
  Value map = call.object();
  if (!where.valid() || !is(map, ValueKind::Record))
    return call.done(unknownValue());
  const Address value = entryOf(call, call.row, where, map, key).field("second");
  return call.done(call.fact.resultIsAddress ? addressValue(value)
                                             : call.machine.memory.read(call.row, value));
}

// An entry of an OrderedDict, which is a list of pairs: the key decides which, but not how.
Outcomes dictElement(Call &call, const Value &list) {
  Value key = call.argCount() ? call.arg(0) : unknownValue();
  const Term index = applyTerm("key", {is(key, ValueKind::Scalar) ? key->term : symbolTerm("a key")});
  Outcomes outcomes;
  for (Outcome &outcome : elementAt(call, call.objectAddress(), list, index)) {
    Value pair = is(outcome.result, ValueKind::Address)
                     ? call.machine.memory.read(outcome.row, outcome.result->address)
                     : outcome.result;
    auto second = pair->fields.find("second");
    Value value = second == pair->fields.end() ? unknownValue() : second->second;
    Address copy = call.machine.allocate(outcome.row, call.frame, call.fact, "at::Tensor");
    call.machine.memory.write(outcome.row, copy, value);
    outcomes.push_back(
        {std::move(outcome.row), addressValue(copy)}); // find() gives a pointer, operator[] a reference
  }
  return outcomes;
}

// The entry an iterator stands at, when it is one of the map at `where`.
std::optional<Name> entryAt(const Address &where, const Value &iterator) {
  if (is(iterator, ValueKind::Address) && iterator->address.path && !iterator->address.path->index &&
      Address{iterator->address.root, iterator->address.path->parent} == where)
    return iterator->address.path->field;
  return std::nullopt;
}

// erase(key), erase(iterator), erase(first, last).
Outcomes eraseEntries(Call &call) {
  const Address where = call.objectAddress();
  const Value map = call.object();
  const std::vector<Name> keys = mapKeys(map);
  const bool isOrdered = map->type.view().find("unordered") == std::string_view::npos;
  const std::optional<Name> at = entryAt(where, call.arg(0));
  std::optional<Name> key = at ? at : keyOf(call, 0);
  ValueData rest = *map;
  Value result = call.machine.unknownResult(call);
  if (call.argCount() == 2) {
    const std::optional<Name> to = entryAt(where, call.arg(1));
    const auto first = at ? std::find(keys.begin(), keys.end(), *at) : keys.end();
    const auto last = to ? std::find(keys.begin(), keys.end(), *to) : keys.end();
    if (!at || !to || !hasKnownKeys(map) || map->origin || (first == keys.end() && *at != mapEnd()) ||
        (last == keys.end() && *to != mapEnd()) || first > last || (!isOrdered && *to != mapEnd())) {
      call.machine.memory.write(call.row, where, unknownValue());
      return call.done(unknownValue());
    }
    for (auto gone = first; gone != last; ++gone)
      rest.fields.erase(*gone);
    result = call.arg(1);
  } else if (key && key != anyKey() && key != deviceKey()) {
    const bool isThere = rest.fields.erase(*key) != 0;
    const auto next =
        std::upper_bound(keys.begin(), keys.end(), *key, [&](Name a, Name b) { return isBefore(map, a, b); });
    if (at && hasKnownKeys(map))
      result = isOrdered || keys.size() < 2 ? addressValue(where.field(next == keys.end() ? mapEnd() : *next))
                                            : unknownValue();
    else if (!at && hasKnownKeys(map) && !map->origin)
      result = scalarValue(intTerm(isThere));
  } else if (!map->fields.empty()) {
    // Any entry may be gone: what is left is what was there, of keys that are not known.
    const Value held = heldByAny(map);
    rest.fields = {{anyKey(), mapEntry(anyKey(), held ? held : unknownValue())}};
  }
  call.machine.memory.write(call.row, where, makeValue(std::move(rest)));
  return call.done(result);
}

enum class Replaces { WhenNew, Always };

// emplace(key, value), insert({key, value}): a pair of an iterator and whether it was new.
Outcomes insertEntry(Call &call, Replaces replaces) {
  Value value;
  std::optional<Name> key;
  if (call.argCount() == 2) {
    key = keyOf(call, 0);
    value = call.arg(1);
  } else if (Value entry = call.argCount() ? call.arg(0) : unknownValue();
             is(entry, ValueKind::Record) && entry->fields.count("second")) {
    value = entry->fields.at("second");
    const Value first = entry->fields.count("first") ? entry->fields.at("first") : unknownValue();
    key = keyField(call.row, first);
  }
  const Value map = call.object();
  if (!value || !is(map, ValueKind::Record))
    return call.done(unknownValue());
  const Address where = call.objectAddress();
  const Name field = key ? *key : anyKey();
  const bool isThere = key && key != deviceKey() && map->fields.count(field);
  if (isThere && replaces != Replaces::Always) {
    // An entry that is there stays as it is.
  } else if (!key && !map->fields.empty()) { // any entry may have been replaced
    const Address entry = entryOf(call, call.row, where, map, key).field("second");
    value = joinValues(call.machine.memory.read(call.row, entry), value, symbolTerm("map"));
    call.machine.memory.write(call.row, entry, value);
  } else {
    call.machine.memory.write(call.row, where, withField(map, field, mapEntry(field, value)));
  }
  if (call.fact.resultIsAddress) // OrderedDict gives the value
    return call.done(addressValue(where.field(field).field("second")));
  const bool isKnown = isThere || (key && !map->origin && hasKnownKeys(map) && key != deviceKey());
  return call.done(recordValue("std::pair", {{"first", addressValue(where.field(field))},
                                             {"second", isKnown ? scalarValue(intTerm(!isThere))
                                                                : call.machine.unknownResult(call)}}));
}

// find, count and contains: is the key there? A key that is not known may be, when there is any entry.
Outcomes lookUp(Call &call, std::string_view method) {
  const Address where = call.objectAddress();
  const Value map = call.object();
  const bool isDict = startsWith(call.fact.name.view(), "torch::OrderedDict::");
  if ((method == "end" || method == "cend") && where.valid())
    return call.done(addressValue(where.field(mapEnd())));
  if (!is(map, ValueKind::Record) || map->origin || !where.valid())
    return call.done(call.machine.unknownResult(call));
  const bool begins = method == "begin" || method == "cbegin";
  if (begins && hasKnownKeys(map)) {
    const std::vector<Name> keys = mapKeys(map);
    const bool isOrdered = map->type.view().find("unordered") == std::string_view::npos;
    if (keys.size() > 1 && !isOrdered)
      return call.done(unknownValue());
    return call.done(addressValue(where.field(keys.empty() ? mapEnd() : keys.front())));
  }
  const std::optional<Name> key = begins || !call.argCount() ? std::nullopt : keyOf(call, 0);
  const bool isKnown = key && key != deviceKey() && (map->fields.count(*key) || hasKnownKeys(map));
  auto found = [&](bool is) {
    Row row = call.row;
    if (is && !key && !begins)
      call.machine.memory.write(row, where, whereKeySays(map, key));
    if (method == "count" || method == "contains")
      return Outcome{std::move(row), scalarValue(intTerm(is))};
    if (!is)
      return Outcome{std::move(row), isDict ? nullValue() : addressValue(where.field(mapEnd()))};
    const Address entry = entryOf(call, row, where, call.machine.memory.read(row, where), key);
    Value at = addressValue(isDict ? entry.field("second") : entry);
    return Outcome{std::move(row), at};
  };
  Outcomes outcomes;
  if (!isKnown || map->fields.count(*key))
    if (!map->fields.empty())
      outcomes.push_back(found(true));
  if (outcomes.empty() || (!isKnown && !begins))
    outcomes.push_back(found(false));
  return outcomes;
}

} // namespace

std::optional<Outcomes> modelMap(Call &call, std::string_view method) {
  const Address where = call.objectAddress();
  if (Value dict = call.object(); is(dict, ValueKind::List)) {
    if (isOneOf(method, {"find", "operator[]", "at"}))
      return dictElement(call, dict);
    if (isOneOf(method, {"begin", "end"}))
      return call.done(addressValue(where));
    return call.done(call.machine.unknownResult(call));
  }
  if (isOneOf(method, {"operator[]", "at"}))
    return mapElement(call, keyOf(call, 0));
  if (isOneOf(method, {"emplace", "try_emplace", "insert"}))
    return insertEntry(call, Replaces::WhenNew);
  if (method == "insert_or_assign")
    return insertEntry(call, Replaces::Always);
  if (method == "clear") {
    call.machine.memory.write(call.row, where, recordValue(call.fact.operands[0].type));
    return call.done(unknownValue());
  }
  if (method == "erase" && is(call.object(), ValueKind::Record)) {
    return eraseEntries(call);
  }
  if (isOneOf(method, {"find", "count", "contains", "begin", "cbegin", "end", "cend"}))
    return lookUp(call, method);
  if (method == "operator=") {
    call.machine.memory.write(call.row, where, call.arg(0));
    return call.done(call.fact.resultIsAddress ? addressValue(where) : call.arg(0));
  }
  return std::nullopt;
}

// Keys of a map all of whose keys are known, else nothing.
std::vector<Name> mapKeys(const Value &map) {
  std::vector<Name> keys;
  if (map->origin)
    return keys;
  for (const auto &[name, entry] : map->fields) {
    if (name == anyKey() || name == deviceKey() || !entry->fields.count("second"))
      return {};
    keys.push_back(name);
  }
  std::sort(keys.begin(), keys.end(), [&](Name a, Name b) { return isBefore(map, a, b); });
  return keys;
}

std::optional<Address> anyEntry(Call &call, const Address &where, const Value &map) {
  if (hasKnownKeys(map) || map->origin)
    return std::nullopt;
  return entryOf(call, call.row, where, map, std::nullopt);
}

// A map whose entries are changed one by one through a loop nobody can unroll: nothing is known of them after
// it.
void forgetEntries(Machine &machine, Row &row, const Address &where, const Value &map) {
  Value forgotten = map;
  for (const auto &[name, entry] : map->fields)
    forgotten = withField(forgotten, name, mapEntry(name, unknownValue()));
  machine.memory.write(row, where, forgotten);
}

} // namespace devicetidy
