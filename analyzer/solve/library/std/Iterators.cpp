#include "analyzer/solve/library/std/Iterators.h"

#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/ModelBodies.h"
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/solve/library/std/Maps.h"
#include "analyzer/solve/library/std/Words.h"

#include <algorithm>

namespace devicetidy {
namespace {

using models::Effect;

// The entries of `map` with its end; empty when they are not all known.
std::vector<Name> placesOf(const Types &types, const Value &map) {
  if (!isWholeMap(map))
    return {};
  std::vector<Name> places = mapKeys(types, map);
  places.push_back(hidden::mapEnd);
  return places;
}

// The number of the entry at an iterator; none where it is not known how many stand before it.
std::optional<std::size_t> placeIn(const Types &types, const Value &map, const std::vector<Name> &places,
                                   const Value &iterator) {
  const MapPlace place = placeOf(iterator->address.path->field);
  if (place.standing == Standing::Entry && place.key != hidden::mapEnd && !hasOrder(types, map))
    return std::nullopt;
  const auto found = std::find(places.begin(), places.end(), place.key);
  return found == places.end() ? std::nullopt
                               : std::optional<std::size_t>(static_cast<std::size_t>(found - places.begin()));
}

Value negated(const Row &row, Term by) {
  return scalarValue(row.resolve(applyTerm(op::minus, {intTerm(0), by})));
}

Value advancedEntry(const Types &types, const Value &map, const Value &entry, Term by) {
  const std::vector<Name> places = placesOf(types, map);
  const auto at = placeIn(types, map, places, entry);
  const auto steps = constantOf(by);
  if (!at || !steps)
    return unknownValue();
  const std::int64_t to = static_cast<std::int64_t>(*at) + *steps;
  if (to < 0 || to >= static_cast<std::int64_t>(places.size()))
    return unknownValue();
  const Standing standing = placeOf(entry->address.path->field).standing;
  const bool isFromEnd = standing == Standing::Entry && !hasOrder(types, map);
  const Name field = fieldOf({places[static_cast<std::size_t>(to)], isFromEnd ? Standing::Some : standing});
  return addressValue(sequenceOf(entry->address).field(field));
}

// The place of the entry at `iterator`, which stands in `map`.
Outcomes entryAt(Call &call, const Value &map, const Value &iterator) {
  const Address where = sequenceOf(iterator->address);
  const MapPlace place = placeOf(iterator->address.path->field);
  if (!map->fields.count(place.key))
    return call.done(unknownValue());
  return call.done(addressValue(place.standing == Standing::Some ? anyEntryOf(call, call.row, where, map)
                                                                 : where.field(place.key)));
}

// The first callable operator of a class of the program.
const Function *ownOperator(const Machine &machine, const Value &value, std::string_view name) {
  return is(value, ValueKind::Record) && machine.types.isProject(value->type)
             ? findMethod(machine, value->type, name)
             : nullptr;
}

} // namespace

Value advanced(Call &call, const Value &iterator, Term by) {
  if (isReversed(iterator))
    return reversed(advanced(call, baseOf(iterator), negated(call.row, by)->term));
  if (isInserter(iterator))
    return iterator;
  if (const Value map = mapAround(call.machine.memory, call.row, iterator))
    return advancedEntry(call.machine.types, map, iterator, by);
  const Value position = asPosition(call.machine.memory, call.row, iterator);
  if (!isPosition(position))
    return constantOf(by) == 0 ? iterator : unknownValue();
  const Address next = moved(position->address, by);
  return addressValue(sequenceOf(next).element(call.row.resolve(numberAt(next))));
}

std::optional<std::int64_t> ordinalOf(const Machine &machine, const Row &row, const Value &iterator) {
  if (isReversed(iterator)) {
    const auto base = ordinalOf(machine, row, baseOf(iterator));
    return base ? std::optional<std::int64_t>(-*base) : std::nullopt;
  }
  if (isPosition(iterator))
    return row.numberOf(scalarValue(numberAt(iterator->address)));
  if (const Value map = mapAround(machine.memory, row, iterator))
    if (const auto at = placeIn(machine.types, map, placesOf(machine.types, map), iterator))
      return static_cast<std::int64_t>(*at);
  return std::nullopt;
}

Value distanceBetween(Call &call, const Value &first, const Value &last) {
  if (isReversed(first) && isReversed(last))
    return distanceBetween(call, baseOf(last), baseOf(first));
  const Value from = asPosition(call.machine.memory, call.row, first),
              to = asPosition(call.machine.memory, call.row, last);
  if (isPosition(from) && isPosition(to) && areInOneSequence(from->address, to->address))
    return scalarValue(
        call.row.resolve(applyTerm(op::minus, {numberAt(to->address), numberAt(from->address)})));
  if (mapAround(call.machine.memory, call.row, first) && mapAround(call.machine.memory, call.row, last)) {
    const auto a = ordinalOf(call.machine, call.row, first), b = ordinalOf(call.machine, call.row, last);
    if (a && b)
      return scalarValue(intTerm(*b - *a));
  }
  return scalarValue(call.machine.freshScalar(call));
}

Outcomes standingAt(Call &call, const Value &iterator) {
  Machine &machine = call.machine;
  if (isInserter(iterator)) {
    const Address copy = machine.allocate(call.row, call.frame, call.fact, {});
    machine.memory.write(call.row, copy, iterator);
    return call.done(addressValue(copy));
  }
  if (isReversed(iterator))
    return standingAt(call, advanced(call, baseOf(iterator), intTerm(-1)));
  if (const Value map = mapAround(machine.memory, call.row, iterator))
    return entryAt(call, map, iterator);
  const Value position = asPosition(machine.memory, call.row, iterator);
  if (isPosition(position)) {
    const Address sequence = sequenceOf(position->address);
    const Value list = machine.memory.read(call.row, sequence);
    if (!is(list, ValueKind::List))
      return call.done(position);
    Fact place = call.fact; // which element it is may be decided here: its place is asked for
    place.resultIsAddress = true;
    Call asked{call.machine, call.frame, call.row, place, call.first};
    return elementAt(asked, sequence, list, numberAt(position->address));
  }
  if (const Function *dereference = ownOperator(machine, iterator, "operator*")) {
    Site site(call);
    const Address copy = machine.allocate(call.row, call.frame, call.fact, iterator->type);
    machine.memory.write(call.row, copy, iterator);
    return invokeForwarded(site.call, call.row, *dereference, copy, {});
  }
  return call.done(is(iterator, ValueKind::Address) ? iterator : unknownValue());
}

Outcomes putAt(Call &call, const Value &iterator, const Value &value) {
  Machine &machine = call.machine;
  if (isInserter(iterator)) {
    const Value where = iterator->fields.at(hidden::where);
    const Address container = iterator->fields.at(hidden::container)->address;
    if (is(where, ValueKind::Scalar))
      return callMethod(call, container, "push_" + textOf(where->term)->str(), {value});
    return callMethod(call, container, "insert", {where, value});
  }
  Outcomes outcomes = standingAt(call, iterator);
  for (Outcome &outcome : outcomes) {
    if (is(outcome.result, ValueKind::Address))
      machine.memory.write(outcome.row, outcome.result->address, value);
    outcome.result = unknownValue();
  }
  return outcomes;
}

Value inserterAt(const Address &container, const Value &position) {
  return recordValue(hidden::inserterType,
                     {{hidden::container, addressValue(container)}, {hidden::where, position}});
}

Value inserterAtEnd(const Address &container, Name end) {
  return recordValue(hidden::inserterType, {{hidden::container, addressValue(container)},
                                            {hidden::where, scalarValue(textTerm(end))}});
}

Outcomes callMethod(Call &call, const Address &object, std::string_view name,
                    const std::vector<Value> &args) {
  Site site(call);
  const Value held = call.machine.memory.read(call.row, object);
  // A list that a body made has no type of the program; it is a sequence like any other.
  const Name type = held->type.empty() && is(held, ValueKind::List) ? Name("std::vector") : held->type;
  site.fact.name = Name(call.machine.types.templateOf(type).str() + "::" + std::string(name));
  site.fact.hasObject = true;
  site.call.first = 1;
  auto add = [&](const Value &value, Name operandType, bool isAddress) {
    Operand operand;
    operand.where = site.fact.where;
    operand.reg = static_cast<Reg>(call.row.registers.size());
    operand.type = operandType;
    operand.isAddress = operand.isWritable = isAddress;
    call.row.registers.push_back(value);
    site.fact.operands.push_back(std::move(operand));
  };
  add(addressValue(object), type, true);
  for (const Value &arg : args)
    add(arg, {}, false);
  return call.machine.callLibrary(site.call);
}

namespace {

// The parts of a pair, a tuple or a list in their order; empty for other values.
std::vector<Value> partsOf(const Value &record) {
  std::vector<Value> parts = record->elements;
  for (const auto &[name, field] : record->fields)
    parts.push_back(field);
  return parts;
}

bool isMap(const Call &call, const Value &value) {
  return is(value, ValueKind::Record) && call.machine.types.classOf(value->type) == TypeClass::Map;
}

} // namespace

std::optional<Value> compareRecords(const Call &call, Name op, const Value &a, const Value &b) {
  if (is(a, ValueKind::Scalar) && is(b, ValueKind::Scalar)) {
    const Value result = operatorValue(call.row, op, {a, b}, false);
    return constantOf(result->term) ? std::optional<Value>(result) : std::nullopt;
  }
  const std::vector<Value> left = partsOf(a), right = partsOf(b);
  const bool areLists = is(a, ValueKind::List) && is(b, ValueKind::List) && !isSummary(a) && !isSummary(b);
  const bool areMaps = isMap(call, a) && isMap(call, b) && isWholeMap(a) && isWholeMap(b) && op == op::equal;
  const bool areRecords = is(a, ValueKind::Record) && is(b, ValueKind::Record) && !left.empty() &&
                          left.size() == right.size() && !call.machine.types.isProject(a->type) &&
                          !isMap(call, a);
  if (!areLists && !areRecords && !areMaps)
    return std::nullopt;
  if (left.size() != right.size())
    return op == op::equal ? std::optional<Value>(scalarValue(intTerm(0))) : std::nullopt;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::optional<Value> compared = compareRecords(call, op::equal, left[i], right[i]);
    const auto equal = compared ? constantOf((*compared)->term) : std::nullopt;
    if (!equal)
      return std::nullopt;
    if (!*equal)
      return op == op::equal ? compared : compareRecords(call, op, left[i], right[i]);
  }
  return scalarValue(intTerm(op == op::equal));
}

namespace {

// ++ and --, before the value is taken or behind it.
std::optional<Outcomes> step(Call &call, const Effect &effect) {
  const Value iterator = call.operand(0);
  const Address where = call.addressOf(0);
  const bool isPostfix = call.fact.operands.size() > 1;
  Value next = advanced(call, iterator, intTerm(effect.args[0].number));
  call.machine.memory.write(call.row, where, next);
  return call.done(isPostfix ? iterator : call.fact.resultIsAddress ? addressValue(where) : next);
}

// `iterator` moved by `count`, forwards or, when `sign` is -1, backwards.
Value jumped(Call &call, const Value &iterator, const Value &count, std::int64_t sign) {
  if (!is(count, ValueKind::Scalar))
    return unknownValue();
  return advanced(call, iterator,
                  sign < 0 ? negated(call.row, count->term)->term : call.row.resolve(count->term));
}

// iterator + n, n + iterator, iterator - n, iterator - iterator
std::optional<Outcomes> jump(Call &call, const Effect &effect) {
  const Value a = call.operand(0), b = call.operand(1);
  const std::int64_t sign = effect.args[0].number;
  if (is(a, ValueKind::Scalar))
    return call.done(jumped(call, b, a, sign));
  return call.done(is(b, ValueKind::Scalar) || sign > 0 ? jumped(call, a, b, sign)
                                                        : distanceBetween(call, b, a));
}

std::optional<Outcomes> jumpTo(Call &call, const Effect &effect) {
  const Address where = call.addressOf(0);
  const Value there = jumped(call, call.operand(0), call.operand(1), effect.args[0].number);
  call.machine.memory.write(call.row, where, there);
  return call.done(call.fact.resultIsAddress ? addressValue(where) : there);
}

std::optional<Outcomes> standing(Call &call, const Effect &) { return standingAt(call, call.operand(0)); }

std::optional<Outcomes> standingBehind(Call &call, const Effect &) {
  return standingAt(call, jumped(call, call.operand(0), call.operand(1), 1));
}

std::optional<Outcomes> baseOfIterator(Call &call, const Effect &) {
  const Value iterator = call.operand(0);
  return call.done(isReversed(iterator) ? baseOf(iterator) : iterator);
}

// An inserter that is given a value puts it into its container.
std::optional<Outcomes> assignIterator(Call &call, const Effect &) {
  const Value iterator = call.operand(0), given = call.operand(1);
  if (isInserter(iterator) && !isInserter(given))
    return putAt(call, iterator, given);
  call.machine.memory.write(call.row, call.addressOf(0), given);
  return call.done(call.fact.resultIsAddress ? addressValue(call.addressOf(0)) : given);
}

// Do two iterators of maps stand at the same entry? Nothing when that is not known.
std::optional<bool> areSameEntry(const Value &a, const Value &b) {
  const MapPlace left = placeOf(a->address.path->field), right = placeOf(b->address.path->field);
  if (!(sequenceOf(a->address) == sequenceOf(b->address)))
    return std::nullopt;
  if (left.key == hidden::mapEnd || right.key == hidden::mapEnd)
    return left.key == right.key;
  const bool isOneKnown = (left.standing == Standing::Entry) != (right.standing == Standing::Entry);
  if (isOneKnown || left.key == hidden::anyKey || right.key == hidden::anyKey ||
      left.key == hidden::deviceKey)
    return std::nullopt;
  return left.key == right.key;
}

// Iterators of maps are equal or not; others stand somewhere.
std::optional<Outcomes> compareIterators(Call &call, const Effect &effect) {
  const Value a = call.operand(0), b = call.operand(1);
  const Memory &memory = call.machine.memory;
  const Name op(effect.detail());
  const bool isEquality = op == op::equal || op == op::unequal;
  if (mapAround(memory, call.row, a) && mapAround(memory, call.row, b)) {
    const std::optional<bool> isSame = isEquality ? areSameEntry(a, b) : std::nullopt;
    return call.done(isSame ? scalarValue(intTerm(*isSame == (op == op::equal)))
                            : call.machine.unknownResult(call));
  }
  const Value apart = distanceBetween(call, b, a); // a - b
  return call.done(operatorValue(call.row, op, {apart, scalarValue(intTerm(0))}, /*areIntegers=*/true));
}

// A proxy of an element is read by its conversion, and written by its assignment.
Address elementOfProxy(const Value &proxy) { return proxy->fields.at(hidden::where)->address; }

std::optional<Outcomes> readProxy(Call &call, const Effect &) {
  return call.done(call.machine.memory.read(call.row, elementOfProxy(call.operand(0))));
}

std::optional<Outcomes> flipProxy(Call &call, const Effect &) {
  const Memory &memory = call.machine.memory;
  const Address element = elementOfProxy(call.operand(0));
  memory.write(call.row, element,
               operatorValue(call.row, op::negation, {memory.read(call.row, element)}, false));
  return call.done(unknownValue());
}

std::optional<Outcomes> assignProxy(Call &call, const Effect &) {
  const Memory &memory = call.machine.memory;
  const Value given = call.operand(1);
  memory.write(call.row, elementOfProxy(call.operand(0)),
               isElementProxy(given) ? memory.read(call.row, elementOfProxy(given)) : given);
  return call.done(call.fact.resultIsAddress ? addressValue(call.addressOf(0)) : call.operand(0));
}

} // namespace

Words iteratorWords() {
  return {{{"step_by", step},
           {"jump", jump},
           {"jump_to", jumpTo},
           {"standing", standing},
           {"standing_behind", standingBehind},
           {"base_of_iterator", baseOfIterator},
           {"assign_iterator", assignIterator},
           {"compare_iterators", compareIterators},
           {"read_proxy", readProxy},
           {"flip_proxy", flipProxy},
           {"assign_proxy", assignProxy}},
          {},
          {}};
}

} // namespace devicetidy
