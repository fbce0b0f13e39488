#include "analyzer/solve/library/std/Moves.h"

#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/engine/Library.h"

#include <algorithm>

namespace devicetidy {
namespace {

constexpr int deepest = 6; // records in records

Value leftOf(const Machine &machine, Name type, const Value &value, int depth);

// The parts of a record, each moved by itself.
Value leftOfFields(const Machine &machine, Name type, const Value &record, int depth) {
  if (!is(record, ValueKind::Record))
    return record;
  const std::vector<Name> parts = machine.types.parts(type);
  const bool isTuple = machine.types.classOf(type) == TypeClass::Tuple;
  ValueData data = *record;
  for (auto &[name, field] : data.fields) {
    Name fieldType = machine.types.fieldType(type, name);
    if (const auto number = static_cast<std::size_t>(std::atoi(name.str().c_str()));
        isTuple && number < parts.size())
      fieldType = parts[number];
    if (!fieldType.empty())
      field = leftOf(machine, fieldType, field, depth);
  }
  return makeValue(std::move(data));
}

Value leftOfArray(const Machine &machine, Name type, const Value &list, int depth) {
  ValueData data = *list;
  for (auto *elements : {&data.elements, &data.summary})
    for (Value &element : *elements)
      element = leftOf(machine, machine.types.inner(type), element, depth);
  return makeValue(std::move(data));
}

// What a move leaves in an object of this class, as its row says: nothing, an empty list, the parts of an
// array each moved by itself, or what is not known. Others stay as they are.
Value leftOfClass(const Machine &machine, Name type, const Value &value, int depth) {
  static constexpr std::string_view null = "null", empty = "empty", parts = "parts";
  const Type *known = machine.program.type(type);
  const models::Effect *moved = models::effect(machine.types.templateOf(type).view(), "moved");
  const bool isArray = known && known->kind == TypeKind::Array;
  const std::string_view left = moved ? moved->detail() : isArray ? parts : std::string_view();
  const bool isOfParts = left == parts || left == empty;
  if (left.empty() || (isOfParts && !is(value, ValueKind::List)))
    return value;
  return left == null    ? nullValue()
         : left == empty ? listValue(type, {})
         : left == parts ? leftOfArray(machine, type, value, depth)
                         : unknownValue();
}

// A value of a kind of its own (a node) is emptied as its row says, whatever the library calls its class.
Value leftOfKind(const Value &record) {
  static constexpr std::string_view fields = "fields";
  const models::Effect *moved = models::effect(record->type.view(), "moved");
  if (!moved || moved->detail() != fields)
    return nullptr;
  ValueData data = *record;
  for (auto &[name, field] : data.fields)
    field = nullValue();
  return makeValue(std::move(data));
}

Value leftOf(const Machine &machine, Name type, const Value &value, int depth) {
  if (depth > deepest)
    return unknownValue();
  if (is(value, ValueKind::Record))
    if (Value left = leftOfKind(value))
      return left;
  switch (machine.types.classOf(type)) {
  case TypeClass::Pair:
  case TypeClass::Tuple:
  case TypeClass::Record:
    return leftOfFields(machine, type, value, depth + 1);
  case TypeClass::Optional:
  case TypeClass::Variant:
    return is(value, ValueKind::Tensor) || is(value, ValueKind::Null) || is(value, ValueKind::Scalar)
               ? value
               : unknownValue();
  default:
    return leftOfClass(machine, type, value, depth);
  }
}

// Does this library function certainly take the value of an argument that it is given to move from?
bool takesArgument(const Call &call) {
  return call.fact.kind == FactKind::Construct || effectOf(call.machine, call.fact, "takes_moved");
}

// Does it take it even where the argument is an element of the object, which stays where it is?
bool takesOwn(const Call &call) {
  const models::Effect *takes = effectOf(call.machine, call.fact, "takes_moved");
  return takes && !takes->args.empty();
}

void emptyOperand(Call &call, std::size_t i) {
  const Operand &operand = call.fact.operands[i];
  const Address where = call.addressOf(i);
  // What the object itself holds may stand elsewhere by now.
  const bool isOwn = call.fact.hasObject && where.valid() && leadsThrough(where, call.objectAddress());
  if (!operand.isAddress || !where.valid() || (isOwn && !takesOwn(call)))
    return;
  const Machine &machine = call.machine;
  const Value before = machine.memory.read(call.row, where);
  const Value left = movedFrom(machine, operand.type, before);
  if (!same(left, before))
    machine.memory.write(call.row, where, takesArgument(call) ? left : unknownValue());
}

} // namespace

Value movedFrom(const Machine &machine, Name type, const Value &value) {
  return is(value, ValueKind::Unknown) ? value : leftOf(machine, type, value, 0);
}

void emptyMoved(Machine &machine, Frame &frame, const Fact &fact, Row &row) {
  if (std::none_of(fact.operands.begin(), fact.operands.end(),
                   [](const Operand &operand) { return operand.isMoved; }))
    return;
  Call call{machine, frame, row, fact, fact.hasObject ? std::size_t(1) : std::size_t(0)};
  if (fact.kind == FactKind::Call && effectOf(call.machine, call.fact, "leaves_moved"))
    return;
  for (std::size_t i = 0; i < fact.operands.size(); ++i)
    if (fact.operands[i].isMoved)
      emptyOperand(call, i);
}

} // namespace devicetidy
