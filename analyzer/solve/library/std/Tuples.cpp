//===- Tuples.cpp - optionals, pairs, tuples, and the free functions around them ---===//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/std/Containers.h"

#include <algorithm>

namespace devicetidy {

namespace {

// optional<T>::emplace(args...) makes a T in place; nothing when that is to store the argument.
std::optional<Outcomes> emplace(Call &call) {
  const Types &types = call.machine.types;
  const Name inner = types.inner(call.fact.operands[0].type);
  const Address where = call.objectAddress();
  const bool isMade = types.classOf(inner) == TypeClass::Record || types.classOf(inner) == TypeClass::Other;
  if (!isMade || !where.valid())
    return std::nullopt;
  call.machine.endGuards(call.row, call.object(), inner);
  Outcomes outcomes;
  for (Row &row :
       call.machine.construct(call.frame, call.fact, call.row, inner, where, call.forwardedFrom(0)))
    outcomes.push_back({std::move(row), call.fact.resultIsAddress ? addressValue(where) : unknownValue()});
  return outcomes;
}

} // namespace

std::optional<bool> holdsNothing(const Row &row, const Value &value) {
  switch (value->kind) {
  case ValueKind::Null:
    return true;
  case ValueKind::Unknown:
    return std::nullopt;
  case ValueKind::Tensor:
  case ValueKind::Device:
    return value->placement.kind == PlacementKind::Symbol ? std::nullopt : std::optional<bool>(false);
  case ValueKind::Address:
    return kindOf(value->address.root) == RootKind::Outside ? std::nullopt : std::optional<bool>(false);
  case ValueKind::Scalar: {
    const Term known = row.resolve(value->term);
    return constantOf(known) || textOf(known) ? std::optional<bool>(false) : std::nullopt;
  }
  default:
    return value->origin ? std::nullopt : std::optional<bool>(false);
  }
}

std::optional<Outcomes> modelOptional(Call &call, std::string_view method) {
  Value held = call.object();
  if (method == "value" && is(held, ValueKind::Null))
    return Outcomes(); // it throws
  if (isOneOf(method, {"value", "operator*", "get", "toTensor", "toTensorRef", "operator->", "data"}))
    return call.done(call.fact.resultIsAddress || method == "operator->" ? addressValue(call.objectAddress())
                                                                         : held);
  if (method == "value_or")
    return call.done(is(held, ValueKind::Null) ? call.arg(0) : held);
  if (isOneOf(method, {"has_value", "operator bool", "isTensor", "isNone"})) {
    const std::optional<bool> nothing = holdsNothing(call.row, held);
    const bool isNumber = is(held, ValueKind::Scalar);
    return call.done(nothing ? scalarValue(intTerm(method == "isNone"                 ? *nothing
                                                   : method == "isTensor" && isNumber ? false
                                                                                      : !*nothing))
                             : call.machine.unknownResult(call));
  }
  if (method == "emplace")
    if (std::optional<Outcomes> made = emplace(call))
      return made;
  if (isOneOf(method, {"operator=", "emplace"})) {
    call.machine.memory.write(call.row, call.objectAddress(), call.argCount() ? call.arg(0) : nullValue());
    return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : held);
  }
  if (method == "reset") {
    call.machine.endGuards(call.row, held, call.machine.types.inner(call.fact.operands[0].type));
    call.machine.memory.write(call.row, call.objectAddress(), nullValue());
    return call.done(unknownValue());
  }
  if (is(held, ValueKind::Tensor) && isOneOf(method, {"to", "cuda", "cpu", "pin_memory"})) {
    Fact fact = call.fact; // a PackedSequence moves as the tensor it stands for
    fact.name = Name("at::Tensor::" + std::string(method));
    Call moved{call.machine, call.frame, call.row, fact, call.first};
    return call.machine.callLibrary(moved);
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

namespace {

Outcomes makeTuple(Call &call, bool references) {
  std::map<Name, Value> fields;
  const bool pair = call.machine.types.classOf(call.resultType()) == TypeClass::Pair;
  for (std::size_t i = 0; i < call.argCount(); ++i) {
    Name field = pair ? Name(i == 0 ? "first" : "second") : Name(std::to_string(i));
    fields[field] = references ? registerOf(call.row, call.fact.operands[i].reg) : call.arg(i);
  }
  return call.done(recordValue(call.resultType(), std::move(fields)));
}

// std::get names a part by its number or by its type.
std::optional<std::int64_t> partNumber(const Call &call) {
  if (!call.fact.templateNumbers.empty())
    return call.fact.templateNumbers[0];
  const std::vector<Name> parts = call.machine.types.parts(call.fact.operands[0].type);
  const auto found = call.fact.templateTypes.empty()
                         ? parts.end()
                         : std::find(parts.begin(), parts.end(), call.fact.templateTypes[0]);
  return found == parts.end() ? std::nullopt : std::optional<std::int64_t>(found - parts.begin());
}

Outcomes getPart(Call &call) {
  Address where = call.addressOf(0);
  Value value = call.operand(0);
  const std::optional<std::int64_t> number = partNumber(call);
  if (!number)
    return call.done(call.machine.unknownResult(call));
  const std::int64_t index = *number;
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

// The parts of a pair, tuple or array as they are handed on one by one; nothing when they are not known.
std::optional<std::vector<Argument>> partsOf(const Call &call, std::size_t i) {
  const Argument whole = call.forwarded(i);
  std::vector<Argument> parts;
  auto add = [&](const Value &value, const Address &where) {
    parts.push_back({value, whole.address.valid() ? where : Address(), whole.text});
  };
  if (is(whole.value, ValueKind::List) && !isSummary(whole.value)) {
    for (std::size_t n = 0; n < whole.value->elements.size(); ++n)
      add(whole.value->elements[n], whole.address.element(intTerm(static_cast<std::int64_t>(n))));
    return parts;
  }
  if (!is(whole.value, ValueKind::Record))
    return std::nullopt;
  const bool isPair = call.machine.types.classOf(call.fact.operands[call.first + i].type) == TypeClass::Pair;
  const std::size_t count = call.machine.types.parts(call.fact.operands[call.first + i].type).size();
  for (std::size_t n = 0; n < count; ++n) {
    const Name field = isPair ? Name(n == 0 ? "first" : "second") : Name(std::to_string(n));
    const auto held = whole.value->fields.find(field);
    const Address where = whole.address.field(field);
    add(held != whole.value->fields.end() ? held->second
        : whole.address.valid()           ? call.machine.memory.read(call.row, where)
                                          : unknownValue(),
        where);
  }
  return parts;
}

Outcomes joinTuples(Call &call) {
  std::map<Name, Value> fields;
  for (std::size_t i = 0; i < call.argCount(); ++i) {
    const auto parts = partsOf(call, i);
    if (!parts)
      return call.done(unknownValue());
    for (const Argument &part : *parts)
      fields.emplace(Name(std::to_string(fields.size())), part.value);
  }
  return call.done(recordValue(call.resultType(), std::move(fields)));
}

Outcomes makeFromTuple(Call &call) {
  const auto parts = partsOf(call, 0);
  if (!parts)
    return call.done(call.machine.unknownResult(call));
  const Address made = call.machine.allocate(call.row, call.frame, call.fact, call.resultType());
  Outcomes outcomes;
  for (Row &row : call.machine.construct(call.frame, call.fact, call.row, call.resultType(), made, *parts)) {
    Value value = call.machine.memory.read(row, made);
    outcomes.push_back({std::move(row), std::move(value)});
  }
  return outcomes;
}

} // namespace

std::optional<Outcomes> modelTupleFunction(Call &call, std::string_view name) {
  if (isOneOf(name, {"std::move", "std::forward", "std::as_const", "std::addressof", "std::ref", "std::cref",
                     "c10::guts::forward"}))
    return call.done(registerOf(call.row, call.fact.operands[0].reg));
  if (isOneOf(name, {"std::tie", "std::forward_as_tuple"}))
    return makeTuple(call, true);
  if (isOneOf(name, {"std::make_tuple", "std::make_pair"}))
    return makeTuple(call, false);
  if (name == "std::get")
    return getPart(call);
  if (name == "std::apply" && call.argCount() == 2)
    if (const auto parts = partsOf(call, 1))
      return callValue(call, call.row, call.arg(0), *parts,
                       call.fact.operands[0].isAddress ? call.addressOf(0) : Address());
  if (name == "std::tuple_cat")
    return joinTuples(call);
  if (name == "std::make_from_tuple")
    return makeFromTuple(call);
  if (isOneOf(name, {"std::make_optional", "c10::make_optional", "c10::make_left"}))
    return call.done(call.operand(0));
  return std::nullopt;
}

} // namespace devicetidy
