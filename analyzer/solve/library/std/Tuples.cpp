//===- Tuples.cpp - optionals, pairs, tuples, and the free functions around them ---===//
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/solve/library/std/Words.h"

#include <algorithm>

namespace devicetidy {
namespace {

using models::Effect;

// optional<T>::emplace(args...) makes a T in place, or stores the argument.
std::optional<Outcomes> emplaceHeld(Call &call, const Effect &) {
  Machine &machine = call.machine;
  const Name inner = machine.types.inner(call.fact.operands[0].type);
  const TypeClass kind = machine.types.classOf(inner);
  const Address where = call.objectAddress();
  const Value result = call.fact.resultIsAddress ? addressValue(where) : unknownValue();
  if ((kind != TypeClass::Record && kind != TypeClass::Other) || !where.valid()) {
    machine.memory.write(call.row, where, call.argCount() ? call.arg(0) : nullValue());
    return call.done(result);
  }
  machine.endGuards(call.row, call.object(), inner);
  Outcomes outcomes;
  for (Row &row : machine.construct(call.frame, call.fact, call.row, inner, where, call.forwardedFrom(0)))
    outcomes.push_back({std::move(row), result});
  return outcomes;
}

// What stands for a value moves as the value: at::Tensor::to of the tensor in a PackedSequence.
std::optional<Outcomes> asHeld(Call &call, const Effect &effect) {
  if (!is(call.object(), ValueKind::Tensor))
    return std::nullopt;
  Fact fact = call.fact;
  fact.name = Name(effect.detail());
  Call moved{call.machine, call.frame, call.row, fact, call.first};
  return call.machine.callLibrary(moved);
}

// `std::tie(a, b) = f()` assigns through the references the tuple holds.
std::optional<Outcomes> assignParts(Call &call, const Effect &) {
  const Value target = call.object(), value = call.arg(0);
  const bool isTie = is(target, ValueKind::Record) && !target->fields.empty() &&
                     is(target->fields.begin()->second, ValueKind::Address);
  if (is(target, ValueKind::Record))
    for (const auto &[name, field] : target->fields) {
      if (!is(field, ValueKind::Address))
        continue;
      auto found = value->fields.find(name);
      if (found == value->fields.end()) // a pair assigned to a tuple
        found = value->fields.find(name == partName(TypeClass::Tuple, 0) ? partName(TypeClass::Pair, 0)
                                                                         : partName(TypeClass::Pair, 1));
      const bool isThere = is(value, ValueKind::Record) && found != value->fields.end();
      call.machine.memory.write(call.row, field->address, isThere ? found->second : unknownValue());
    }
  if (!isTie)
    call.machine.memory.write(call.row, call.objectAddress(), value);
  return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : value);
}

// A tuple of the arguments, or of references to them.
Outcomes tupleOf(Call &call, bool references) {
  std::map<Name, Value> fields;
  const TypeClass kind = call.machine.types.classOf(call.resultType());
  for (std::size_t i = 0; i < call.argCount(); ++i)
    fields[partName(kind == TypeClass::Pair ? kind : TypeClass::Tuple, i)] =
        references ? registerOf(call.row, call.fact.operands[i].reg) : call.arg(i);
  return call.done(recordValue(call.resultType(), std::move(fields)));
}

std::optional<Outcomes> tie(Call &call, const Effect &) { return tupleOf(call, true); }
std::optional<Outcomes> makeTuple(Call &call, const Effect &) { return tupleOf(call, false); }

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

std::optional<Outcomes> getPart(Call &call, const Effect &) {
  Address where = call.addressOf(0);
  Value value = call.operand(0);
  const std::optional<std::int64_t> number = partNumber(call);
  if (!number)
    return call.done(call.machine.unknownResult(call));
  const std::int64_t index = *number;
  if (is(value, ValueKind::List))
    return elementAt(call, where, value, intTerm(index));
  Name field = partName(TypeClass::Tuple, static_cast<std::size_t>(index));
  if (is(value, ValueKind::Record) && !value->fields.count(field)) {
    const Name named = partName(TypeClass::Pair, static_cast<std::size_t>(index));
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
  const Name type = call.fact.operands[call.first + i].type;
  const bool isPair = call.machine.types.classOf(type) == TypeClass::Pair;
  const std::size_t count = call.machine.types.parts(type).size();
  for (std::size_t n = 0; n < count; ++n) {
    const Name field = partName(isPair ? TypeClass::Pair : TypeClass::Tuple, n);
    const auto held = whole.value->fields.find(field);
    const Address where = whole.address.field(field);
    add(held != whole.value->fields.end() ? held->second
        : whole.address.valid()           ? call.machine.memory.read(call.row, where)
                                          : unknownValue(),
        where);
  }
  return parts;
}

std::optional<Outcomes> joinTuples(Call &call, const Effect &) {
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

std::optional<Outcomes> makeFromTuple(Call &call, const Effect &) {
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

std::optional<Outcomes> applyToParts(Call &call, const Effect &) {
  const auto parts = call.argCount() == 2 ? partsOf(call, 1) : std::nullopt;
  if (!parts)
    return std::nullopt;
  return callValue(call, call.row, call.arg(0), *parts,
                   call.fact.operands[0].isAddress ? call.addressOf(0) : Address());
}

// The part of a tuple that has one; what several make is not known.
Value onlyPart(const Call &call, const Value &tuple) {
  if (!is(tuple, ValueKind::Record) || tuple->fields.size() != 1)
    return unknownValue();
  const Value part = tuple->fields.begin()->second;
  return is(part, ValueKind::Address) ? call.machine.memory.read(call.row, part->address) : part;
}

std::optional<Outcomes> makeParts(const Making &making, const Effect &) {
  const TypeClass kind = making.call.machine.types.classOf(making.type);
  if (making.args.size() == 1 && is(making.arg(0), ValueKind::Record))
    return making.done(making.arg(0));
  // The pair of three arguments is made piece by piece.
  const bool isPiecewise = making.args.size() == 3 && kind == TypeClass::Pair;
  std::map<Name, Value> fields;
  for (std::size_t i = isPiecewise; i < making.args.size(); ++i)
    fields[partName(kind, i - isPiecewise)] =
        isPiecewise ? onlyPart(making.call, making.arg(i)) : making.arg(i);
  return making.done(recordValue(making.type, std::move(fields)));
}

} // namespace

Words tupleWords() {
  return {{{"emplace_held", emplaceHeld},
           {"as_held", asHeld},
           {"assign_parts", assignParts},
           {"tie", tie},
           {"make_tuple", makeTuple},
           {"get_part", getPart},
           {"apply_to_parts", applyToParts},
           {"join_tuples", joinTuples},
           {"make_from_tuple", makeFromTuple}},
          {{"only_part", [](Call &call) { return call.done(onlyPart(call, call.arg(0))); }}},
          {{"make_parts", makeParts}}};
}

} // namespace devicetidy
