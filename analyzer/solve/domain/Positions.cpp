#include "analyzer/solve/domain/Positions.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"

namespace devicetidy {
namespace {

// The step of `path` right below `whole`, null when `path` does not lead through `whole`.
Path stepBelow(Path path, Path whole) {
  for (; path; path = path->parent)
    if (path->parent == whole)
      return path;
  return nullptr;
}

// `path` with its first steps, down to `old`, replaced by `fresh`.
Path rebased(Path path, Path old, Path fresh) {
  if (path == old)
    return fresh;
  Path parent = rebased(path->parent, old, fresh);
  return path->index ? elementPath(parent, path->index) : fieldPath(parent, path->field);
}

} // namespace

bool isPosition(const Value &value) {
  return is(value, ValueKind::Address) && value->address.path && value->address.path->index;
}

Value asPosition(const Memory &memory, const Row &row, const Value &value) {
  if (is(value, ValueKind::Address) && !isPosition(value) &&
      is(memory.read(row, value->address), ValueKind::List))
    return addressValue(value->address.element(intTerm(0)));
  return value;
}

Address sequenceOf(const Address &position) { return {position.root, position.path->parent}; }

Term numberAt(const Address &position) { return position.path->index; }

Address moved(const Address &position, Term by) {
  return sequenceOf(position).element(applyTerm(op::plus, {numberAt(position), by}));
}

bool areInOneSequence(const Address &a, const Address &b) { return sequenceOf(a) == sequenceOf(b); }

Value reversed(Value base) { return recordValue(hidden::reverseType, {{hidden::base, std::move(base)}}); }

bool isReversed(const Value &value) {
  return is(value, ValueKind::Record) && value->type == hidden::reverseType;
}

Value baseOf(const Value &reversed) { return reversed->fields.at(hidden::base); }

bool isInserter(const Value &value) {
  return is(value, ValueKind::Record) && value->type == hidden::inserterType;
}

bool isIterator(const Value &value) { return isPosition(value) || isReversed(value) || isInserter(value); }

MapPlace placeOf(Name field) {
  const std::string_view text = field.view();
  if (startsWith(text, hidden::each))
    return {Name(text.substr(hidden::each.size())), Standing::Each};
  if (startsWith(text, hidden::some))
    return {Name(text.substr(hidden::some.size())), Standing::Some};
  return {field, Standing::Entry};
}

Name fieldOf(const MapPlace &place) {
  if (place.standing == Standing::Entry || place.key == hidden::mapEnd || place.key == hidden::anyKey)
    return place.key;
  return Name(std::string(place.standing == Standing::Each ? hidden::each : hidden::some) + place.key.str());
}

Value mapAround(const Memory &memory, const Row &row, const Value &value) {
  if (!is(value, ValueKind::Address) || !value->address.path || value->address.path->index)
    return nullptr;
  Value map = memory.read(row, sequenceOf(value->address));
  return is(map, ValueKind::Record) && memory.types.classOf(map->type) == TypeClass::Map ? map : nullptr;
}

Value elementProxy(const Address &element) {
  return recordValue(hidden::elementType, {{hidden::where, addressValue(element)}});
}

bool isElementProxy(const Value &value) {
  return is(value, ValueKind::Record) && value->type == hidden::elementType;
}

Address shifted(const Address &address, const Address &sequence, std::int64_t at, std::int64_t count) {
  if (address.root != sequence.root)
    return address;
  const Path step = stepBelow(address.path, sequence.path);
  if (!step || !step->index)
    return address;
  const auto number = constantOf(step->index);
  if (!number)
    return {};
  if (*number < at)
    return address;
  if (count < 0 && *number < at - count)
    return {};
  const Path fresh = elementPath(sequence.path, intTerm(*number + count));
  return {address.root, rebased(address.path, step, fresh)};
}

bool leadsThrough(const Address &address, const Address &whole) {
  return address.root == whole.root &&
         (address.path == whole.path || stepBelow(address.path, whole.path) != nullptr);
}

Address moveBelow(const Address &address, const Address &from, const Address &to) {
  if (!leadsThrough(address, from))
    return address;
  if (address.path == from.path)
    return to;
  return {to.root, from.path ? rebased(address.path, from.path, to.path) : appendPath(to.path, address.path)};
}

} // namespace devicetidy
