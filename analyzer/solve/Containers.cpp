//===- Containers.cpp - lists, maps, pairs, tuples, optionals, range-for ---===//
#include "analyzer/solve/Devices.h"
#include "analyzer/solve/Registers.h"

#include <algorithm>

namespace devicetidy {

void startRound(Row &row, Term current);

namespace {

const Name summaryKey("@any");
constexpr std::size_t maxKnownElements = 16;

bool startsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}
std::string_view lastPart(std::string_view name) {
  const std::size_t colon = name.rfind("::");
  return colon == std::string_view::npos ? name : name.substr(colon + 2);
}

bool isOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

Outcomes many(Outcomes outcomes) { return outcomes; }

// The address of element `index` of the list at `list`; one row per alternative when the index is not known.
Outcomes elementAt(Call &call, const Address &where, const Value &list, Term index) {
  index = call.row.resolve(index);
  if (!is(list, ValueKind::List) || !where.valid())
    return call.done(unknownValue());
  auto result = [&](Row &row, const Address &address) {
    return call.fact.resultIsAddress ? addressValue(address) : call.machine.memory.read(row, address);
  };
  if (!isSummary(list) && !constantOf(index)) {
    const bool alike = std::all_of(list->elements.begin(), list->elements.end(),
                                   [&](const Value &element) { return same(element, list->elements[0]); });
    // In a loop run for any round, which entry it is differs from round to round: a device list gives "its
    // i-th entry".
    const bool anyRound = applies(index, "loop");
    const bool devices = std::all_of(list->elements.begin(), list->elements.end(), [](const Value &element) {
      return is(element, ValueKind::Device) && element->placement.kind == PlacementKind::Cuda;
    });
    const bool numbers = std::all_of(list->elements.begin(), list->elements.end(),
                                     [](const Value &element) { return is(element, ValueKind::Scalar); });
    if (!alike && anyRound && (devices || numbers)) {
      const Term entry = applyTerm(
          "entry", {intTerm(where.root), intTerm(static_cast<std::int64_t>(list->hash >> 1)), index});
      Value value = devices ? deviceValue(Placement::cuda(entry)) : scalarValue(entry);
      if (!call.fact.resultIsAddress)
        return call.done(value);
      Address copy = call.machine.allocate(call.row, call.frame, call.fact, call.resultType());
      call.machine.memory.write(call.row, copy, value);
      return call.done(addressValue(copy));
    }
    if (!alike && list->elements.size() <= bounds::forksPerRead) {
      Outcomes outcomes;
      for (std::size_t i = 0; i < list->elements.size(); ++i) {
        Row row = call.row;
        const Term number = intTerm(static_cast<std::int64_t>(i));
        if (row.assume(applyTerm("==", {index, number}), 1))
          outcomes.push_back({row, result(row, where.element(number))});
      }
      return many(std::move(outcomes));
    }
  }
  if (isSummary(list) && list->summary.size() > 1) {
    // Which alternative an index has is decided once per row.
    Outcomes outcomes;
    const Term choice = applyTerm("alternative", {intTerm(where.root), index});
    for (std::size_t i = 0; i < list->summary.size() && i < bounds::forksPerRead; ++i) {
      Row row = call.row;
      if (!row.assume(applyTerm("==", {choice, intTerm(static_cast<std::int64_t>(i))}), 1))
        continue;
      Term bound = elementIndex();
      Value chosen =
          rewriteTerms(list->summary[i], [&](Term term) { return substitute(term, bound, index); });
      if (!call.fact.resultIsAddress) {
        outcomes.push_back({row, chosen});
        continue;
      }
      Address copy = call.machine.allocate(row, call.frame, call.fact, call.resultType());
      call.machine.memory.write(row, copy, chosen);
      outcomes.push_back({row, addressValue(copy)});
    }
    return outcomes;
  }
  return call.done(result(call.row, where.element(index)));
}

Term sizeTerm(const Value &list, const Address &where) {
  if (is(list, ValueKind::List) && !isSummary(list))
    return intTerm(static_cast<std::int64_t>(list->elements.size()));
  return applyTerm("size", {intTerm(where.root),
                            intTerm(static_cast<std::int64_t>(where.path ? where.path->hash >> 1 : 0))});
}

// In a loop that is run once for any round, the element stands for one of every round.
Value appended(Call &call, const Value &list, Name type, Value element) {
  if (Term round = call.machine.roundOf(call.frame, call.row)) {
    std::vector<Value> alternatives;
    if (is(list, ValueKind::List))
      for (const auto *known : {&list->elements, &list->summary})
        alternatives.insert(alternatives.end(), known->begin(), known->end());
    alternatives.push_back(generalise(element));
    ValueData filled = *summaryList(type, std::move(alternatives));
    filled.term = round; // back() in this round is what was just appended
    return makeValue(std::move(filled));
  }
  if (is(list, ValueKind::List) && isSummary(list)) {
    std::vector<Value> alternatives = list->summary;
    alternatives.push_back(std::move(element));
    return summaryList(list->type, std::move(alternatives));
  }
  std::vector<Value> elements = is(list, ValueKind::List) ? list->elements : std::vector<Value>();
  elements.push_back(std::move(element));
  if (elements.size() > maxKnownElements)
    return summaryList(type, std::move(elements));
  return listValue(type, std::move(elements));
}

// push_back and its kin; emplace_back constructs in place.
Outcomes append(Call &call, std::string_view method) {
  Machine &machine = call.machine;
  const Address where = call.objectAddress();
  Value list = call.object();
  const Name type = call.fact.operands[0].type, inner = machine.types.inner(type);
  Value element;
  const bool emplaces = isOneOf(method, {"emplace_back", "emplace", "emplace_front"});
  const TypeClass kind = machine.types.classOf(inner);
  const bool builds =
      emplaces && (kind == TypeClass::Record || kind == TypeClass::Holder || kind == TypeClass::Device ||
                   kind == TypeClass::Pair || kind == TypeClass::Tuple);
  const bool sameType = call.argCount() == 1 && call.fact.operands[call.first].type == inner;
  if (builds && !sameType) {
    Address made = machine.allocate(call.row, call.frame, call.fact, inner);
    std::vector<Row> rows =
        machine.construct(call.frame, call.fact, call.row, inner, made, call.forwardedFrom(0));
    Outcomes outcomes;
    for (Row &row : rows) {
      Value value = machine.memory.read(row, made);
      Call inRow{machine, call.frame, row, call.fact, call.first};
      machine.memory.write(row, where, appended(inRow, machine.memory.read(row, where), type, value));
      outcomes.push_back({std::move(row), unknownValue()});
    }
    return outcomes;
  }
  element = call.argCount() ? call.arg(call.argCount() - 1) : unknownValue();
  Value next = appended(call, list, type, element);
  if (isOneOf(method, {"push_front", "emplace_front"}) && is(next, ValueKind::List) && !isSummary(next)) {
    std::vector<Value> rotated = next->elements;
    std::rotate(rotated.begin(), rotated.end() - 1, rotated.end());
    next = listValue(type, std::move(rotated));
  }
  machine.memory.write(call.row, where, next);
  if (method == "emplace_back" && call.fact.resultIsAddress && !isSummary(next))
    return call.done(
        addressValue(where.element(intTerm(static_cast<std::int64_t>(next->elements.size()) - 1))));
  return call.done(unknownValue());
}

Outcomes resize(Call &call) {
  Value count = call.arg(0), list = call.object();
  const Address where = call.objectAddress();
  const Name type = call.fact.operands[0].type;
  const auto number = is(count, ValueKind::Scalar) ? constantOf(call.row.resolve(count->term)) : std::nullopt;
  Value fill = call.argCount() > 1 ? call.arg(1) : nullValue();
  if (number && *number >= 0 && *number <= static_cast<std::int64_t>(maxKnownElements) &&
      is(list, ValueKind::List) && !isSummary(list)) {
    std::vector<Value> elements = list->elements;
    elements.resize(static_cast<std::size_t>(*number), fill);
    call.machine.memory.write(call.row, where, listValue(type, std::move(elements)));
  } else {
    call.machine.memory.write(call.row, where, summaryList(type, {fill}));
  }
  return call.done(unknownValue());
}

std::optional<Outcomes> modelList(Call &call, std::string_view method) {
  Machine &machine = call.machine;
  const Address where = call.objectAddress();
  Value list = call.object();
  if (isOneOf(method, {"push_back", "emplace_back", "push", "emplace", "push_front", "emplace_front", "add"}))
    return append(call, method);
  if (method == "insert") {
    // Where it goes matters less than that it is in there.
    Value element = call.arg(call.argCount() - 1);
    if (is(element, ValueKind::List) || call.argCount() > 2)
      element = unknownValue();
    machine.memory.write(call.row, where, appended(call, list, call.fact.operands[0].type, element));
    return call.done(unknownValue());
  }
  if (isOneOf(method, {"operator[]", "at", "get"}) && call.argCount() == 1) {
    Value index = call.arg(0);
    return is(index, ValueKind::Scalar) ? elementAt(call, where, list, index->term)
                                        : call.done(unknownValue());
  }
  if (isOneOf(method, {"front", "top"}))
    return elementAt(call, where, list, intTerm(0));
  if (method == "back") {
    const Term size = sizeTerm(list, where);
    const Term round = call.machine.roundOf(call.frame, call.row);
    if (round && is(list, ValueKind::List) && list->term == round)
      return elementAt(call, where, list, round);
    const Term last = constantOf(size) ? applyTerm("-", {size, intTerm(1)}) : applyTerm("back", {size});
    return elementAt(call, where, list, last);
  }
  if (isOneOf(method, {"size", "length"}))
    return call.done(scalarValue(call.row.resolve(sizeTerm(list, where))));
  if (method == "empty") {
    const Term size = sizeTerm(list, where);
    return call.done(scalarValue(call.row.resolve(applyTerm("==", {size, intTerm(0)}))));
  }
  if (method == "resize" || method == "assign")
    return resize(call);
  if (method == "clear") {
    machine.memory.write(call.row, where, listValue(call.fact.operands[0].type, {}));
    return call.done(unknownValue());
  }
  if (isOneOf(method, {"pop_back", "pop", "pop_front", "erase"})) {
    if (is(list, ValueKind::List) && !isSummary(list) && !list->elements.empty() && method != "erase") {
      std::vector<Value> elements = list->elements;
      elements.erase(method == "pop_back" ? elements.end() - 1 : elements.begin());
      machine.memory.write(call.row, where, listValue(list->type, std::move(elements)));
    }
    return call.done(machine.unknownResult(call));
  }
  if (method == "operator=") {
    Value value = call.arg(0);
    machine.memory.write(call.row, where, value);
    return call.done(call.fact.resultIsAddress ? addressValue(where) : value);
  }
  if (isOneOf(method, {"begin", "cbegin", "data", "rbegin", "end", "cend", "rend"}))
    return call.done(addressValue(where)); // an iterator stands for its container
  if (isOneOf(method, {"vec", "toVector", "slice"}))
    return call.done(list);
  if (isOneOf(method, {"reserve", "shrink_to_fit", "swap"}))
    return call.done(unknownValue());
  return std::nullopt;
}

std::optional<Name> keyOf(const Call &call, std::size_t i) {
  Value key = call.arg(i);
  if (!is(key, ValueKind::Scalar))
    return std::nullopt;
  Term term = call.row.resolve(key->term);
  if (std::optional<Name> text = textOf(term))
    return Name("[" + text->str() + "]");
  if (auto number = constantOf(term))
    return Name("[" + std::to_string(*number) + "]");
  return std::nullopt;
}

// Entries are pairs, as iteration sees them.
Value mapEntry(Name key, Value value) {
  const std::string_view text = key.view();
  const Name plain = text.size() > 2 && text.front() == '[' ? Name(text.substr(1, text.size() - 2)) : Name();
  Value first = plain.empty() ? unknownValue() : scalarValue(textTerm(plain));
  return recordValue("std::pair", {{"first", first}, {"key", first}, {"second", value}, {"value", value}});
}

Outcomes mapElement(Call &call, const std::optional<Name> &key) {
  Address where = call.objectAddress();
  Value map = call.object();
  if (!where.valid() || !is(map, ValueKind::Record))
    return call.done(unknownValue());
  Name field = key ? *key : summaryKey;
  if (!map->fields.count(field)) {
    Value held;
    if (key) {
      auto any = map->fields.find(summaryKey);
      held = any != map->fields.end() && any->second->fields.count("second")
                 ? any->second->fields.at("second")
                 : nullValue();
    } else {
      // An unknown key: what all entries agree on.
      for (const auto &[name, entry] : map->fields)
        if (entry->fields.count("second"))
          held = held ? joinValues(held, entry->fields.at("second"), symbolTerm("map"))
                      : entry->fields.at("second");
      if (!held)
        held = unknownValue();
    }
    call.machine.memory.write(call.row, where, withField(map, field, mapEntry(field, held)));
  }
  const Address value = where.field(field).field("second");
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
  if (isOneOf(method, {"emplace", "try_emplace", "insert_or_assign", "insert"})) {
    Value value;
    std::optional<Name> key;
    if (call.argCount() == 2) {
      key = keyOf(call, 0);
      value = call.arg(1);
    } else if (Value entry = call.arg(0); is(entry, ValueKind::Record) && entry->fields.count("second")) {
      value = entry->fields.at("second");
      const Value first = entry->fields.count("first") ? entry->fields.at("first") : unknownValue();
      if (is(first, ValueKind::Scalar) && textOf(first->term))
        key = Name("[" + textOf(first->term)->str() + "]");
    }
    Value map = call.object();
    if (value && is(map, ValueKind::Record))
      call.machine.memory.write(
          call.row, where, withField(map, key ? *key : summaryKey, mapEntry(key ? *key : summaryKey, value)));
    return call.done(unknownValue());
  }
  if (method == "operator=") {
    call.machine.memory.write(call.row, where, call.arg(0));
    return call.done(call.fact.resultIsAddress ? addressValue(where) : call.arg(0));
  }
  return std::nullopt;
}

std::optional<Outcomes> modelOptional(Call &call, std::string_view method) {
  Value held = call.object();
  if (isOneOf(method, {"value", "operator*", "get", "toTensor", "toTensorRef", "operator->"}))
    return call.done(call.fact.resultIsAddress || method == "operator->" ? addressValue(call.objectAddress())
                                                                         : held);
  if (method == "value_or")
    return call.done(is(held, ValueKind::Null) ? call.arg(0) : held);
  if (isOneOf(method, {"has_value", "operator bool", "isTensor", "isNone"})) {
    if (is(held, ValueKind::Null))
      return call.done(scalarValue(intTerm(method == "isNone")));
    const bool outside = (is(held, ValueKind::Tensor) || is(held, ValueKind::Device)) &&
                         held->placement.kind == PlacementKind::Symbol;
    if (!is(held, ValueKind::Unknown) && !is(held, ValueKind::Scalar) && !held->origin && !outside)
      return call.done(scalarValue(intTerm(method != "isNone")));
    return call.done(call.machine.unknownResult(call));
  }
  if (isOneOf(method, {"operator=", "emplace"})) {
    call.machine.memory.write(call.row, call.objectAddress(), call.argCount() ? call.arg(0) : nullValue());
    return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : held);
  }
  if (method == "reset") {
    call.machine.memory.write(call.row, call.objectAddress(), nullValue());
    return call.done(unknownValue());
  }
  if (isOneOf(method, {"toTuple", "toTensorVector", "toTensorList", "toList", "elements", "toTupleRef"}))
    return call.done(held);
  return std::nullopt;
}

// std::tuple: `std::tie(a, b) = f()` assigns through the references it holds.
std::optional<Outcomes> modelTuple(Call &call, std::string_view method) {
  if (method != "operator=")
    return std::nullopt;
  Value target = call.object(), value = call.arg(0);
  if (is(target, ValueKind::Record))
    for (const auto &[name, field] : target->fields) {
      if (!is(field, ValueKind::Address))
        continue;
      Value part = unknownValue();
      if (is(value, ValueKind::Record)) {
        auto found = value->fields.find(name);
        if (found == value->fields.end()) // a pair assigned to a tuple
          found = value->fields.find(name == Name("0") ? "first" : "second");
        if (found != value->fields.end())
          part = found->second;
      }
      call.machine.memory.write(call.row, field->address, part);
    }
  const bool isTie = is(target, ValueKind::Record) && !target->fields.empty() &&
                     is(target->fields.begin()->second, ValueKind::Address);
  if (!isTie)
    call.machine.memory.write(call.row, call.objectAddress(), value);
  return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : value);
}

Outcomes makeTuple(Call &call, bool references) {
  std::map<Name, Value> fields;
  const bool pair = call.machine.types.classOf(call.resultType()) == TypeClass::Pair;
  for (std::size_t i = 0; i < call.argCount(); ++i) {
    Name field = pair ? Name(i == 0 ? "first" : "second") : Name(std::to_string(i));
    fields[field] = references ? registerOf(call.row, call.fact.operands[i].reg) : call.arg(i);
  }
  return call.done(recordValue(call.resultType(), std::move(fields)));
}

Outcomes getPart(Call &call) {
  Address where = call.addressOf(0);
  Value value = call.operand(0);
  const std::int64_t index = call.fact.templateNumbers.empty() ? 0 : call.fact.templateNumbers[0];
  if (is(value, ValueKind::List))
    return elementAt(call, where, value, intTerm(index));
  Name field(std::to_string(index));
  if (is(value, ValueKind::Record) && !value->fields.count(field)) {
    const Name named = index == 0 ? "first" : "second";
    if (value->fields.count(named) || call.machine.types.classOf(value->type) == TypeClass::Pair)
      field = named;
  }
  if (call.fact.resultIsAddress && where.valid()) {
    Value part = call.machine.memory.read(call.row, where.field(field));
    return call.done(is(part, ValueKind::Address) && is(value, ValueKind::Record) &&
                             call.machine.types.classOf(call.resultType()) == TypeClass::Tensor
                         ? part
                         : addressValue(where.field(field)));
  }
  auto found = value->fields.find(field);
  return call.done(found == value->fields.end() ? unknownValue() : found->second);
}

std::optional<Outcomes> modelFree(Call &call, std::string_view name) {
  if (isOneOf(name, {"std::move", "std::forward", "std::as_const", "std::addressof", "std::ref", "std::cref",
                     "c10::guts::forward"}))
    return call.done(registerOf(call.row, call.fact.operands[0].reg));
  if (isOneOf(name, {"std::tie", "std::forward_as_tuple"}))
    return makeTuple(call, true);
  if (isOneOf(name, {"std::make_tuple", "std::make_pair"}))
    return makeTuple(call, false);
  if (name == "std::get")
    return getPart(call);
  if (name == "std::exchange" && call.argCount() == 2) {
    Value old = call.operand(0);
    Value next = call.operand(1);
    call.machine.memory.write(call.row, call.addressOf(0), next);
    return call.done(old);
  }
  if (name == "std::swap" && call.argCount() == 2) {
    Address a = call.addressOf(0), b = call.addressOf(1);
    Value va = call.operand(0), vb = call.operand(1);
    call.machine.memory.write(call.row, a, vb);
    call.machine.memory.write(call.row, b, va);
    return call.done(unknownValue());
  }
  if (isOneOf(name, {"std::begin", "std::end", "std::data"}))
    return call.done(registerOf(call.row, call.fact.operands[0].reg));
  if (name == "std::size")
    return call.done(scalarValue(sizeTerm(call.operand(0), call.addressOf(0))));
  if (isOneOf(name, {"std::make_optional", "c10::make_optional", "c10::make_left"}))
    return call.done(call.operand(0));
  return std::nullopt;
}

// Keys of a map all of whose keys are known, else nothing.
std::vector<Name> mapKeys(const Value &map) {
  std::vector<Name> keys;
  for (const auto &[name, entry] : map->fields) {
    if (name == summaryKey || !entry->fields.count("second"))
      return {};
    keys.push_back(name);
  }
  return keys;
}

// A map whose entries are changed one by one through a loop nobody can unroll: nothing is known of them after
// it.
void forgetEntries(Machine &machine, Row &row, const Address &where, const Value &map) {
  Value forgotten = map;
  for (const auto &[name, entry] : map->fields)
    forgotten = withField(forgotten, name, mapEntry(name, unknownValue()));
  machine.memory.write(row, where, forgotten);
}

std::string iteratorKey(const Call &call, const Address &range) {
  return call.frame.function.id.str() + "@" + std::to_string(call.frame.depth) + "@" +
         std::to_string(range.root) + "@" + std::to_string(range.path ? range.path->hash : 0);
}

} // namespace

// Range-for: lists of a few known elements are run element by element; others once for "any element", whose
// index is a loop variable.
Outcomes Machine::rangeCall(Call &call) {
  Address range = call.addressOf(0);
  Value list = call.operand(0);
  // A pointer to a container (a data loader held by a smart pointer): look through it.
  if (is(list, ValueKind::Address)) {
    range = list->address;
    list = memory.read(call.row, range);
  }
  // A container module is iterated over its modules.
  if (is(list, ValueKind::Record) && list->fields.count(hidden::children())) {
    range = range.field(hidden::children());
    list = memory.read(call.row, range);
  }
  const bool test = call.fact.name == Name("__range_has_next");
  const bool isMap = is(list, ValueKind::Record) && types.classOf(list->type) == TypeClass::Map;
  const std::vector<Name> keys = isMap ? mapKeys(list) : std::vector<Name>();
  const std::size_t size = isMap ? keys.size() : list->elements.size();
  const bool known =
      size <= bounds::unrolledElements && (isMap ? size > 0 : is(list, ValueKind::List) && !isSummary(list));
  const RootId counter = memory.global(Name("iterator " + iteratorKey(call, range)), "long", {});
  const Block &block = call.frame.function.blocks[static_cast<std::size_t>(call.frame.block)];
  if (test && block.terminator.entersLoop)
    call.row.store.set(counter, scalarValue(intTerm(0)));
  Value position = call.row.store.get(counter);
  if (known && position && constantOf(position->term)) {
    const std::int64_t at = *constantOf(position->term);
    if (test)
      return call.done(scalarValue(intTerm(at < static_cast<std::int64_t>(size))));
    call.row.store.set(counter, scalarValue(intTerm(at + 1)));
    if (isMap)
      return call.done(addressValue(range.field(keys[static_cast<std::size_t>(at) % size])));
    return call.done(addressValue(range.element(intTerm(at))));
  }
  if (test)
    return call.done(unknownValue());
  const Term round = applyTerm("loop", {symbolTerm(Name(iteratorKey(call, range)))});
  startRound(call.row, round);
  call.row.rounds[loopHeads(call.frame.function)[static_cast<std::size_t>(call.frame.block)]] = round;
  if (is(list, ValueKind::List) && list->summary.size() > 1)
    return elementAt(call, range, list, round);
  if (is(list, ValueKind::List))
    return call.done(addressValue(range.element(round)));
  if (isMap && range.valid())
    forgetEntries(*this, call.row, range, list);
  // A data loader or a container nobody knows: its element type says what can be in it.
  Address element = allocate(call.row, call.frame, call.fact, call.resultType());
  Value batch = is(list, ValueKind::Record) && list->fields.count("@batch") ? list->fields.at("@batch")
                                                                            : unknownValue();
  if (types.classOf(call.resultType()) == TypeClass::List && !is(batch, ValueKind::List))
    batch = is(batch, ValueKind::Unknown) ? batch : summaryList(call.resultType(), {batch});
  memory.write(call.row, element, takenBatch(call, batch));
  return call.done(addressValue(element));
}

std::optional<Outcomes> modelContainers(Call &call) {
  std::string_view name = call.fact.name.view();
  if (startsWith(name, "torch::OrderedDict::Item::") && call.fact.hasObject) {
    const Address value = call.objectAddress().field(lastPart(name) == "key" ? "first" : "second");
    return call.done(call.fact.resultIsAddress ? addressValue(value)
                                               : call.machine.memory.read(call.row, value));
  }
  if (!call.fact.hasObject)
    return modelFree(call, name);
  if (call.fact.operands.empty())
    return std::nullopt;
  const std::string_view method = lastPart(name);
  // By the static class first; iterators of containers are addresses of the container.
  switch (call.machine.types.classOf(call.fact.operands[0].type)) {
  case TypeClass::List:
    return modelList(call, method);
  case TypeClass::Map:
    return modelMap(call, method);
  case TypeClass::Optional:
  case TypeClass::Wrapper:
    return modelOptional(call, method);
  case TypeClass::Tuple:
  case TypeClass::Pair:
    return modelTuple(call, method);
  default:
    break;
  }
  // Iterators stand for their container: what they point to is any element.
  if ((method == "operator*" || method == "operator->") && name.find("iterator") != std::string_view::npos) {
    Value iterator = call.object();
    if (!is(iterator, ValueKind::Address))
      return call.done(unknownValue());
    Value list = call.machine.memory.read(call.row, iterator->address);
    if (!is(list, ValueKind::List))
      return call.done(unknownValue());
    Term round = call.machine.roundOf(call.frame, call.row);
    return call.done(addressValue(iterator->address.element(
        round ? round : symbolTerm(Name("element at line " + std::to_string(call.fact.where.line))))));
  }
  if (startsWith(name, "torch::ExpandingArray"))
    return call.done(unknownValue());
  return std::nullopt;
}

std::optional<Value> constructContainer(Call &call, Name type, const std::vector<Value> &args) {
  const Types &types = call.machine.types;
  switch (types.classOf(type)) {
  case TypeClass::List: {
    if (args.empty())
      return listValue(type, {});
    if (args.size() <= 2 && is(args[0], ValueKind::List))
      return args[0];
    if (args.size() <= 2 && is(args[0], ValueKind::Tensor) && types.inner(type) == Name("at::Tensor"))
      return listValue(type, {args[0]});
    if (is(args[0], ValueKind::Address)) // a pair of iterators: the container they stand for
      if (Value whole = call.machine.memory.read(call.row, args[0]->address); is(whole, ValueKind::List))
        return whole;
    if (is(args[0], ValueKind::Scalar)) {
      auto count = constantOf(call.row.resolve(args[0]->term));
      const std::string &name = type.str();
      if (name.find("ArrayRef") != std::string::npos) // one number, or a pointer and a length
        return args.size() == 1 ? listValue(type, {args[0]}) : summaryList(type, {unknownValue()});
      Value fill = args.size() > 1 ? args[1] : nullValue();
      if (count && *count >= 0 && *count <= static_cast<std::int64_t>(maxKnownElements))
        return listValue(type, std::vector<Value>(static_cast<std::size_t>(*count), fill));
      return summaryList(type, {fill});
    }
    return is(args[0], ValueKind::Unknown) ? unknownValue() : listValue(type, args);
  }
  case TypeClass::Map:
    if (args.empty())
      return recordValue(type);
    if (is(args[0], ValueKind::List) && !isSummary(args[0])) {
      std::map<Name, Value> fields;
      for (const Value &entry : args[0]->elements)
        if (is(entry, ValueKind::Record) && entry->fields.count("first") && entry->fields.count("second")) {
          const Value &key = entry->fields.at("first");
          std::optional<Name> text = is(key, ValueKind::Scalar) ? textOf(key->term) : std::nullopt;
          std::optional<std::int64_t> number =
              is(key, ValueKind::Scalar) ? constantOf(key->term) : std::nullopt;
          const Name field = text     ? Name("[" + text->str() + "]")
                             : number ? Name("[" + std::to_string(*number) + "]")
                                      : summaryKey;
          fields[field] = mapEntry(field, entry->fields.at("second"));
        }
      return recordValue(type, std::move(fields));
    }
    return args[0];
  case TypeClass::Pair:
  case TypeClass::Tuple:
  case TypeClass::Example: {
    if (args.size() == 1 && is(args[0], ValueKind::Record))
      return args[0];
    std::map<Name, Value> fields;
    const TypeClass kind = types.classOf(type);
    for (std::size_t i = 0; i < args.size(); ++i) {
      Name field = kind == TypeClass::Tuple  ? Name(std::to_string(i))
                   : kind == TypeClass::Pair ? Name(i == 0 ? "first" : "second")
                                             : Name(i == 0 ? "data" : "target");
      fields[field] = args[i];
    }
    return recordValue(type, std::move(fields));
  }
  case TypeClass::Optional:
  case TypeClass::Wrapper:
  case TypeClass::Scalar:
    if (args.empty())
      return nullValue();
    if (args.size() > 1)
      return listValue(type, args);
    if (types.program.type(type) && is(args[0], ValueKind::Record) &&
        args[0]->type.str().find("nullopt") != std::string::npos)
      return nullValue();
    return args[0];
  case TypeClass::Tensor:
    return args.empty() ? nullValue() : args[0];
  case TypeClass::String:
    return args.empty()                     ? scalarValue(textTerm(""))
           : is(args[0], ValueKind::Scalar) ? args[0]
                                            : unknownValue();
  case TypeClass::Function:
    return args.empty() ? nullValue() : args[0];
  default:
    return std::nullopt;
  }
}

} // namespace devicetidy
