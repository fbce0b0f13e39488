#include "analyzer/solve/library/std/Iterators.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/engine/ModelBodies.h"
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/solve/library/std/Maps.h"
#include "analyzer/solve/library/std/Primitives.h"

#include <algorithm>

namespace devicetidy {
namespace {

const Name inserterType("@inserter"), proxyType("@element"), containerField("@container"),
    whereField("@where");
const Name plusOp("+"), minusOp("-"), equalOp("=="), lessOp("<");

bool isInserter(const Value &value) { return is(value, ValueKind::Record) && value->type == inserterType; }

// The entries of `map` with its end; empty when they are not all known.
std::vector<Name> placesOf(const Value &map) {
  if (!isWholeMap(map))
    return {};
  std::vector<Name> places = mapKeys(map);
  places.push_back(mapEnd());
  return places;
}

// The number of the entry at an iterator; none where it is not known how many stand before it.
std::optional<std::size_t> placeIn(const Value &map, const std::vector<Name> &places, const Value &iterator) {
  const MapPlace place = placeOf(iterator->address.path->field);
  if (place.standing == Standing::Entry && place.key != mapEnd() && !hasOrder(map))
    return std::nullopt;
  const auto found = std::find(places.begin(), places.end(), place.key);
  return found == places.end() ? std::nullopt
                               : std::optional<std::size_t>(static_cast<std::size_t>(found - places.begin()));
}

Value negated(const Row &row, Term by) {
  return scalarValue(row.resolve(applyTerm(minusOp, {intTerm(0), by})));
}

Value advancedEntry(const Value &map, const Value &entry, Term by) {
  const std::vector<Name> places = placesOf(map);
  const auto at = placeIn(map, places, entry);
  const auto steps = constantOf(by);
  if (!at || !steps)
    return unknownValue();
  const std::int64_t to = static_cast<std::int64_t>(*at) + *steps;
  if (to < 0 || to >= static_cast<std::int64_t>(places.size()))
    return unknownValue();
  const Standing standing = placeOf(entry->address.path->field).standing;
  const bool isFromEnd = standing == Standing::Entry && !hasOrder(map);
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

bool isIterator(const Value &value) { return isPosition(value) || isReversed(value) || isInserter(value); }

Value asPosition(const Machine &machine, const Row &row, const Value &value) {
  if (is(value, ValueKind::Address) && !isPosition(value) &&
      is(machine.memory.read(row, value->address), ValueKind::List))
    return addressValue(value->address.element(intTerm(0)));
  return value;
}

Value advanced(Call &call, const Value &iterator, Term by) {
  if (isReversed(iterator))
    return reversed(advanced(call, baseOf(iterator), negated(call.row, by)->term));
  if (isInserter(iterator))
    return iterator;
  if (const Value map = mapAround(call.machine, call.row, iterator))
    return advancedEntry(map, iterator, by);
  const Value position = asPosition(call.machine, call.row, iterator);
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
  if (const Value map = mapAround(machine, row, iterator))
    if (const auto at = placeIn(map, placesOf(map), iterator))
      return static_cast<std::int64_t>(*at);
  return std::nullopt;
}

Value distanceBetween(Call &call, const Value &first, const Value &last) {
  if (isReversed(first) && isReversed(last))
    return distanceBetween(call, baseOf(last), baseOf(first));
  const Value from = asPosition(call.machine, call.row, first), to = asPosition(call.machine, call.row, last);
  if (isPosition(from) && isPosition(to) && areInOneSequence(from->address, to->address))
    return scalarValue(
        call.row.resolve(applyTerm(minusOp, {numberAt(to->address), numberAt(from->address)})));
  if (mapAround(call.machine, call.row, first) && mapAround(call.machine, call.row, last)) {
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
  if (const Value map = mapAround(machine, call.row, iterator))
    return entryAt(call, map, iterator);
  const Value position = asPosition(machine, call.row, iterator);
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
    const Value where = iterator->fields.at(whereField);
    const Address container = iterator->fields.at(containerField)->address;
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

Value elementProxy(const Address &element) {
  return recordValue(proxyType, {{whereField, addressValue(element)}});
}

Value inserterAt(const Address &container, const Value &position) {
  return recordValue(inserterType, {{containerField, addressValue(container)}, {whereField, position}});
}

Value inserterAtEnd(const Address &container, Name end) {
  return recordValue(inserterType,
                     {{containerField, addressValue(container)}, {whereField, scalarValue(textTerm(end))}});
}

Outcomes callMethod(Call &call, const Address &object, std::string_view name,
                    const std::vector<Value> &args) {
  Site site(call);
  const Value held = call.machine.memory.read(call.row, object);
  // A list that a body made has no type of the program; it is a sequence like any other.
  const Name type = held->type.empty() && is(held, ValueKind::List) ? Name("std::vector") : held->type;
  const Type *known = call.machine.program.type(type);
  site.fact.name = Name((known && !known->templateName.empty() ? known->templateName : type).str() +
                        "::" + std::string(name));
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

std::optional<Value> convertedIterator(const Call &call, Name type, const std::vector<Value> &args) {
  const TypeClass kind = call.machine.types.classOf(type);
  const bool isOwn = kind != TypeClass::Other && kind != TypeClass::Record;
  if (isOwn || args.size() != 1 || call.machine.types.isProject(type) ||
      (!isIterator(args[0]) && !mapAround(call.machine, call.row, args[0])))
    return std::nullopt;
  return args[0];
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
  const bool areMaps = isMap(call, a) && isMap(call, b) && isWholeMap(a) && isWholeMap(b) && op == equalOp;
  const bool areRecords = is(a, ValueKind::Record) && is(b, ValueKind::Record) && !left.empty() &&
                          left.size() == right.size() && !call.machine.types.isProject(a->type) &&
                          !isMap(call, a);
  if (!areLists && !areRecords && !areMaps)
    return std::nullopt;
  if (left.size() != right.size())
    return op == equalOp ? std::optional<Value>(scalarValue(intTerm(0))) : std::nullopt;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::optional<Value> compared = compareRecords(call, equalOp, left[i], right[i]);
    const auto equal = compared ? constantOf((*compared)->term) : std::nullopt;
    if (!equal)
      return std::nullopt;
    if (!*equal)
      return op == equalOp ? compared : compareRecords(call, op, left[i], right[i]);
  }
  return scalarValue(intTerm(op == equalOp));
}

namespace {

Outcomes step(Call &call, const Value &iterator, std::int64_t by) {
  const Address where = call.addressOf(0);
  const bool isPostfix = call.fact.operands.size() > 1;
  Value next = advanced(call, iterator, intTerm(by));
  call.machine.memory.write(call.row, where, next);
  return call.done(isPostfix ? iterator : call.fact.resultIsAddress ? addressValue(where) : next);
}

Outcomes jump(Call &call, const Value &iterator, const Value &count, bool isBackwards) {
  if (!is(count, ValueKind::Scalar))
    return call.done(unknownValue());
  const Term by = isBackwards ? negated(call.row, count->term)->term : call.row.resolve(count->term);
  return call.done(advanced(call, iterator, by));
}

Outcomes assignJumped(Call &call, Outcomes jumped) {
  const Address where = call.addressOf(0);
  for (Outcome &outcome : jumped) {
    call.machine.memory.write(outcome.row, where, outcome.result);
    if (call.fact.resultIsAddress)
      outcome.result = addressValue(where);
  }
  return jumped;
}

// Do two iterators of maps stand at the same entry? Nothing when that is not known.
std::optional<bool> areSameEntry(const Value &a, const Value &b) {
  const MapPlace left = placeOf(a->address.path->field), right = placeOf(b->address.path->field);
  if (!(sequenceOf(a->address) == sequenceOf(b->address)))
    return std::nullopt;
  if (left.key == mapEnd() || right.key == mapEnd())
    return left.key == right.key;
  const bool isOneKnown = (left.standing == Standing::Entry) != (right.standing == Standing::Entry);
  if (isOneKnown || left.key == anyKey() || right.key == anyKey() || left.key == deviceKey())
    return std::nullopt;
  return left.key == right.key;
}

Outcomes compare(Call &call, const Value &a, const Value &b, Name op) {
  const bool areEntries = mapAround(call.machine, call.row, a) && mapAround(call.machine, call.row, b);
  if (areEntries) {
    const bool isEquality = op == Name("==") || op == Name("!=");
    const std::optional<bool> isSame = isEquality ? areSameEntry(a, b) : std::nullopt;
    return call.done(isSame ? scalarValue(intTerm(*isSame == (op == Name("=="))))
                            : call.machine.unknownResult(call));
  }
  const Value apart = distanceBetween(call, b, a); // a - b
  return call.done(operatorValue(call.row, op, {apart, scalarValue(intTerm(0))}, /*areIntegers=*/true));
}

// A proxy of an element is read by its conversion, and written by its assignment.
std::optional<Outcomes> modelProxy(Call &call, std::string_view method) {
  const Memory &memory = call.machine.memory;
  const Address element = call.operand(0)->fields.at(whereField)->address;
  const Value held = memory.read(call.row, element);
  if (method == "operator bool")
    return call.done(held);
  if (method == "flip") {
    memory.write(call.row, element, operatorValue(call.row, "!", {held}, false));
    return call.done(unknownValue());
  }
  if (method != "operator=" || call.fact.operands.size() != 2)
    return std::nullopt;
  const Value given = call.operand(1);
  const bool isOther = is(given, ValueKind::Record) && given->type == proxyType;
  memory.write(call.row, element,
               isOther ? memory.read(call.row, given->fields.at(whereField)->address) : given);
  return call.done(call.fact.resultIsAddress ? addressValue(call.addressOf(0)) : call.operand(0));
}

// A function object of the library is called: std::plus<>()(a, b).
std::optional<Outcomes> modelOperatorObject(Call &call) {
  if (!call.fact.hasObject || call.argCount() != 2)
    return std::nullopt;
  const Type *type = call.machine.program.type(call.fact.operands[0].type);
  return type ? applyNamedOperator(call, type->templateName) : std::nullopt;
}

} // namespace

std::optional<Outcomes> modelIterator(Call &call) {
  const std::string_view method = lastPart(call.fact.name.view());
  const bool isOperator = startsWith(method, "operator") || method == "base" || method == "flip";
  if (call.fact.operands.empty() || !isOperator)
    return std::nullopt;
  if (const Value object = call.operand(0); is(object, ValueKind::Record) && object->type == proxyType)
    return modelProxy(call, method);
  if (!startsWith(method, "operator") && method != "base")
    return std::nullopt;
  if (method == "operator()")
    return modelOperatorObject(call);
  const Machine &machine = call.machine;
  const bool isSecond =
      method == "operator+" && call.fact.operands.size() == 2 && isIterator(call.operand(1));
  const TypeClass kind = machine.types.classOf(call.fact.operands[isSecond ? 1 : 0].type);
  if ((kind != TypeClass::Other && kind != TypeClass::Record) ||
      machine.types.isProject(call.fact.operands[0].type))
    return std::nullopt;
  const Value iterator = call.operand(0);
  const bool hasSecond = call.fact.operands.size() > 1;
  const Value second = hasSecond ? call.operand(1) : unknownValue();
  const bool isStanding = isIterator(iterator) || mapAround(machine, call.row, iterator);
  if (!isStanding) {
    if (method == "operator+" && isIterator(second)) // n + iterator
      return jump(call, second, iterator, false);
    return std::nullopt;
  }
  if (method == "base")
    return call.done(isReversed(iterator) ? baseOf(iterator) : iterator);
  if (method == "operator*" || method == "operator->")
    return standingAt(call, iterator);
  if (method == "operator[]") {
    Outcomes outcomes;
    for (Outcome &there : jump(call, iterator, second, false)) {
      Call inRow{call.machine, call.frame, there.row, call.fact, call.first};
      for (Outcome &outcome : standingAt(inRow, there.result))
        outcomes.push_back(std::move(outcome));
    }
    return outcomes;
  }
  if (method == "operator++")
    return step(call, iterator, 1);
  if (method == "operator--")
    return step(call, iterator, -1);
  if (method == "operator+=" || method == "operator-=")
    return assignJumped(call, jump(call, iterator, second, method == "operator-="));
  if (method == "operator+")
    return jump(call, iterator, second, false);
  if (method == "operator-")
    return is(second, ValueKind::Scalar) ? jump(call, iterator, second, true)
                                         : call.done(distanceBetween(call, second, iterator));
  if (method == "operator=" && hasSecond) {
    if (isInserter(iterator) && !isInserter(second))
      return putAt(call, iterator, second);
    call.machine.memory.write(call.row, call.addressOf(0), second);
    return call.done(call.fact.resultIsAddress ? addressValue(call.addressOf(0)) : second);
  }
  if (isOneOf(method, {"operator==", "operator!=", "operator<", "operator>", "operator<=", "operator>="}))
    return compare(call, iterator, second, Name(method.substr(8)));
  return std::nullopt;
}

} // namespace devicetidy
