//===- Dicts.cpp - torch::OrderedDict ---===//
//
// A map, or a list of pairs where its contents come from a module. Maps of the standard library have model
// bodies.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/std/Maps.h"

namespace devicetidy {

namespace {

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

// find() gives a pointer to the value, or null.
Outcomes lookUp(Call &call, const Value &key, bool isFind) {
  const Address where = call.objectAddress();
  const Value map = call.object();
  if (!is(map, ValueKind::Record) || map->origin || !where.valid())
    return call.done(call.machine.unknownResult(call));
  const std::optional<bool> isThere = holdsKey(call.row, map, key);
  Outcomes outcomes;
  if (isThere.value_or(true)) {
    Row row = call.row;
    call.machine.memory.write(row, where, asKeySays(row, map, key));
    const Address entry = entryOf(call, row, where, call.machine.memory.read(row, where), key);
    outcomes.push_back(
        {std::move(row), isFind ? addressValue(entry.field("second")) : scalarValue(intTerm(1))});
  }
  if (!isThere.value_or(false))
    outcomes.push_back({call.row, isFind ? nullValue() : scalarValue(intTerm(0))});
  return outcomes;
}

// insert() and update() give the value.
Outcomes insert(Call &call, const Address &where) {
  const bool isPair = call.argCount() == 1;
  const Value pair = call.arg(0);
  auto part = [&](Name name) { return pair->fields.count(name) ? pair->fields.at(name) : unknownValue(); };
  Outcomes outcomes = insertUnder(call, where, isPair ? part("first") : call.arg(0),
                                  isPair ? part("second") : call.arg(1), /*replaces=*/false);
  for (Outcome &outcome : outcomes)
    if (is(outcome.result, ValueKind::Record))
      outcome.result = addressValue(outcome.result->fields.at("first")->address.field("second"));
  return outcomes;
}

} // namespace

std::optional<Outcomes> modelDict(Call &call, std::string_view method) {
  const Address where = call.objectAddress();
  const Value dict = call.object();
  if (is(dict, ValueKind::List)) {
    if (isOneOf(method, {"find", "operator[]", "at"}))
      return dictElement(call, dict);
    if (isOneOf(method, {"begin", "end"}))
      return call.done(addressValue(where));
    return call.done(call.machine.unknownResult(call));
  }
  const bool isMap = where.valid() && is(dict, ValueKind::Record);
  if (isOneOf(method, {"operator[]", "at"})) {
    if (!isMap || call.argCount() != 1)
      return call.done(unknownValue());
    const Address value = entryOf(call, call.row, where, dict, call.arg(0)).field("second");
    return call.done(call.fact.resultIsAddress ? addressValue(value)
                                               : call.machine.memory.read(call.row, value));
  }
  if (method == "insert" && call.argCount() > 0 && isMap)
    return insert(call, where);
  if (isOneOf(method, {"find", "contains"}) && call.argCount() == 1)
    return lookUp(call, call.arg(0), method == "find");
  if (method == "clear") {
    call.machine.memory.write(call.row, where, recordValue(call.fact.operands[0].type));
    return call.done(unknownValue());
  }
  if (method == "operator=") {
    call.machine.memory.write(call.row, where, call.arg(0));
    return call.done(call.fact.resultIsAddress ? addressValue(where) : call.arg(0));
  }
  return std::nullopt;
}

} // namespace devicetidy
