#include "analyzer/solve/library/std/Moves.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Positions.h"

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

// A list of the standard library; those of LibTorch and views stay as they are.
Value leftOfList(const Machine &machine, const Type *known, Name type, const Value &list, int depth) {
  if (!known || !is(list, ValueKind::List))
    return list;
  const std::string_view name = known->templateName.view();
  if (name == "std::array" || known->kind == TypeKind::Array)
    return leftOfArray(machine, type, list, depth);
  if (name == "std::vector")
    return listValue(type, {});
  return !startsWith(name, "std::") || name == "std::span" || name == "std::initializer_list"
             ? list
             : unknownValue();
}

Value leftOf(const Machine &machine, Name type, const Value &value, int depth) {
  const Type *known = machine.program.type(type);
  const std::string_view name = known ? known->templateName.view() : std::string_view();
  if (depth > deepest)
    return unknownValue();
  switch (machine.types.classOf(type)) {
  case TypeClass::Pointer:
    return isOneOf(name, {"std::unique_ptr", "std::shared_ptr", "std::weak_ptr", "c10::intrusive_ptr"})
               ? nullValue()
               : value;
  case TypeClass::List:
    return leftOfList(machine, known, type, value, depth);
  case TypeClass::Map:
    return startsWith(name, "std::") ? unknownValue() : value;
  case TypeClass::String:
    return name == "std::basic_string" ? unknownValue() : value;
  case TypeClass::Pair:
  case TypeClass::Tuple:
  case TypeClass::Record:
    return leftOfFields(machine, type, value, depth + 1);
  case TypeClass::Optional:
  case TypeClass::Variant:
    return is(value, ValueKind::Tensor) || is(value, ValueKind::Null) || is(value, ValueKind::Scalar)
               ? value
               : unknownValue();
  case TypeClass::Function:
    return name == "std::function" ? unknownValue() : value;
  default:
    return value;
  }
}

// Does this library function certainly take the value of an argument that it is given to move from?
bool takesArgument(const Call &call) {
  if (call.fact.kind == FactKind::Construct)
    return true;
  return isOneOf(lastPart(call.fact.name.view()),
                 {"operator=", "push_back", "push_front", "push", "insert", "insert_or_assign", "assign",
                  "reset", "exchange", "make_pair", "make_tuple"});
}

// Does this one certainly leave it where it is?
bool leavesArgument(const Call &call) {
  return isOneOf(lastPart(call.fact.name.view()), {"get", "any_cast", "forward_as_tuple", "tie", "begin",
                                                   "end", "size", "empty", "operator==", "operator!="});
}

void emptyOperand(Call &call, std::size_t i) {
  const Operand &operand = call.fact.operands[i];
  const Address where = call.addressOf(i);
  // What the object itself holds may stand elsewhere by now.
  const bool isOwn = call.fact.hasObject && where.valid() && leadsThrough(where, call.objectAddress());
  if (!operand.isAddress || !where.valid() || (isOwn && lastPart(call.fact.name.view()) != "push_back"))
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
  Call call{machine, frame, row, fact, fact.hasObject ? std::size_t(1) : std::size_t(0)};
  if (fact.kind == FactKind::Call && leavesArgument(call))
    return;
  for (std::size_t i = 0; i < fact.operands.size(); ++i)
    if (fact.operands[i].isMoved)
      emptyOperand(call, i);
}

} // namespace devicetidy
