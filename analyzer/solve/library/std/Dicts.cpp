//===- Dicts.cpp - torch::OrderedDict ---===//
//
// A map, or a list of pairs where its contents come from a module. Maps of the standard library have model
// bodies.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/std/Maps.h"
#include "analyzer/solve/library/std/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

const Name firstPart("first"), secondPart("second");

// An entry of an OrderedDict, which is a list of pairs: the key decides which, but not how.
Outcomes dictElement(Call &call, const Value &list) {
  Value key = call.argCount() ? call.arg(0) : unknownValue();
  const Term index = applyTerm(op::key, {is(key, ValueKind::Scalar) ? key->term : symbolTerm("a key")});
  Outcomes outcomes;
  for (Outcome &outcome : elementAt(call, call.objectAddress(), list, index)) {
    Value pair = is(outcome.result, ValueKind::Address)
                     ? call.machine.memory.read(outcome.row, outcome.result->address)
                     : outcome.result;
    auto second = pair->fields.find(secondPart);
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
        {std::move(row), isFind ? addressValue(entry.field(secondPart)) : scalarValue(intTerm(1))});
  }
  if (!isThere.value_or(false))
    outcomes.push_back({call.row, isFind ? nullValue() : scalarValue(intTerm(0))});
  return outcomes;
}

std::optional<Outcomes> dictFind(Call &call, const Effect &) {
  return is(call.object(), ValueKind::List) ? dictElement(call, call.object())
                                            : lookUp(call, call.arg(0), /*isFind=*/true);
}

std::optional<Outcomes> dictContains(Call &call, const Effect &) {
  return is(call.object(), ValueKind::List) ? call.done(call.machine.unknownResult(call))
                                            : lookUp(call, call.arg(0), /*isFind=*/false);
}

std::optional<Outcomes> dictEntry(Call &call, const Effect &) {
  const Address where = call.objectAddress();
  const Value dict = call.object();
  if (is(dict, ValueKind::List))
    return dictElement(call, dict);
  if (!where.valid() || !is(dict, ValueKind::Record) || call.argCount() != 1)
    return call.done(unknownValue());
  const Address value = entryOf(call, call.row, where, dict, call.arg(0)).field(secondPart);
  return call.done(call.fact.resultIsAddress ? addressValue(value)
                                             : call.machine.memory.read(call.row, value));
}

// insert() and update() give the value.
std::optional<Outcomes> dictInsert(Call &call, const Effect &) {
  const Address where = call.objectAddress();
  if (!where.valid() || !is(call.object(), ValueKind::Record) || call.argCount() == 0)
    return std::nullopt;
  const bool isPair = call.argCount() == 1;
  const Value pair = call.arg(0);
  auto part = [&](Name name) { return pair->fields.count(name) ? pair->fields.at(name) : unknownValue(); };
  Outcomes outcomes = insertUnder(call, where, isPair ? part(firstPart) : call.arg(0),
                                  isPair ? part(secondPart) : call.arg(1), /*replaces=*/false);
  for (Outcome &outcome : outcomes)
    if (is(outcome.result, ValueKind::Record))
      outcome.result = addressValue(outcome.result->fields.at(firstPart)->address.field(secondPart));
  return outcomes;
}

std::optional<Outcomes> dictBegin(Call &call, const Effect &) {
  return is(call.object(), ValueKind::List) ? std::optional(call.done(addressValue(call.objectAddress())))
                                            : std::nullopt;
}

// What else is asked of the contents of a module.
std::optional<Outcomes> dictOther(Call &call, const Effect &) {
  return is(call.object(), ValueKind::List) ? std::optional(call.done(call.machine.unknownResult(call)))
                                            : std::nullopt;
}

std::optional<Outcomes> dictClear(Call &call, const Effect &) {
  call.machine.memory.write(call.row, call.objectAddress(), recordValue(call.fact.operands[0].type));
  return call.done(unknownValue());
}

// What else constructors take (a number of buckets, a description of the keys) says nothing of the entries.
std::optional<Outcomes> makeDict(const Making &making, const Effect &) {
  const Value first = making.arg(0);
  if (making.args.empty() || is(first, ValueKind::Scalar))
    return making.done(recordValue(making.type));
  if (!is(first, ValueKind::List) || isSummary(first))
    return making.done(first);
  std::map<Name, Value> fields;
  for (const Value &entry : first->elements)
    if (is(entry, ValueKind::Record) && entry->fields.count(firstPart) && entry->fields.count(secondPart)) {
      const Name field = keyField(making.call.row, entry->fields.at(firstPart)).value_or(hidden::anyKey);
      fields[field] = mapEntry(field, entry->fields.at(secondPart));
    }
  return making.done(recordValue(making.type, std::move(fields)));
}

} // namespace

Words dictWords() {
  return {{{"dict_find", dictFind},
           {"dict_contains", dictContains},
           {"dict_entry", dictEntry},
           {"dict_insert", dictInsert},
           {"dict_begin", dictBegin},
           {"dict_other", dictOther},
           {"dict_clear", dictClear}},
          {},
          {{"make_dict", makeDict}}};
}

} // namespace devicetidy
