//===- Variants.cpp - std::variant and std::any: which type is held ---===//
//
// A variant's value, and that of an any, is the value of what it holds.
//
//===----------------------------------------------------------------------===//
#include "analyzer/models/Models.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/std/Words.h"

#include <algorithm>

namespace devicetidy {

namespace {

bool isAmong(TypeClass kind, std::initializer_list<TypeClass> classes) {
  return std::find(classes.begin(), classes.end(), kind) != classes.end();
}

} // namespace

std::optional<bool> isOf(const Types &types, Name type, const Value &value) {
  const TypeClass wanted = types.classOf(type);
  if (wanted == TypeClass::Optional || wanted == TypeClass::Wrapper || wanted == TypeClass::Variant ||
      wanted == TypeClass::Other) // stand for what they hold
    return std::nullopt;
  switch (value->kind) {
  case ValueKind::Tensor:
    return wanted == TypeClass::Tensor;
  case ValueKind::Device:
    return wanted == TypeClass::Device;
  case ValueKind::Options:
    return wanted == TypeClass::Options;
  case ValueKind::List:
    if (wanted != TypeClass::List || value->type == type)
      return wanted == TypeClass::List;
    if (value->type.empty())
      return std::nullopt;
    return types.inner(value->type) ==
           types.inner(type); // a vector made of an initializer_list keeps its type
  case ValueKind::Record:
    return value->type == type;
  case ValueKind::Function:
    return wanted == TypeClass::Function;
  case ValueKind::Scalar:
    if (wanted == TypeClass::String || wanted == TypeClass::Scalar)
      return std::nullopt;
    return false;
  case ValueKind::Null:
  case ValueKind::Address:
    if (isAmong(wanted, {TypeClass::Scalar, TypeClass::List, TypeClass::Map, TypeClass::Device,
                         TypeClass::Options, TypeClass::Pair, TypeClass::Tuple, TypeClass::Record}) ||
        (is(value, ValueKind::Address) && wanted == TypeClass::Tensor))
      return false;
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

namespace {

using models::Effect;

bool holdsVariant(const Call &call, std::size_t i) {
  if (i >= call.fact.operands.size())
    return false;
  const Types &types = call.machine.types;
  const Name type = call.fact.operands[i].type;
  return types.classOf(type) == TypeClass::Variant ||
         (types.classOf(type) == TypeClass::Pointer &&
          types.classOf(types.inner(type)) == TypeClass::Variant);
}

// The alternative a call names, by type or by number.
Name alternative(const Call &call) {
  if (!call.fact.templateNumbers.empty()) {
    Name variant = call.fact.operands[0].type;
    if (call.machine.types.classOf(variant) == TypeClass::Pointer)
      variant = call.machine.types.inner(variant);
    const std::vector<Name> all = call.machine.types.parts(variant);
    const auto number = static_cast<std::size_t>(call.fact.templateNumbers[0]);
    return number < all.size() ? all[number] : Name();
  }
  return call.fact.templateTypes.empty() ? Name() : call.fact.templateTypes[0];
}

// Does a variant (or any) of class `variant` whose value is `held` hold alternative `type`? It does when none
// of the others is possible.
std::optional<bool> holds(const Types &types, Name variant, Name type, const Value &held) {
  const std::optional<bool> fits = isOf(types, type, held);
  if (is(held, ValueKind::Unknown) || (fits && !*fits))
    return fits;
  const std::vector<Name> all = types.parts(variant);
  if (all.empty())
    return is(held, ValueKind::Null) ? std::optional<bool>(false) : fits; // an any that is empty
  for (Name other : all)
    if (other != type && isOf(types, other, held) != std::optional<bool>(false))
      return std::nullopt;
  return true;
}

Outcomes getIf(Call &call, Name type) {
  const Value pointer = call.arg(0);
  if (!is(pointer, ValueKind::Address))
    return call.done(unknownValue());
  const std::optional<bool> fits =
      holds(call.machine.types, call.machine.types.inner(call.fact.operands[0].type), type,
            call.machine.memory.read(call.row, pointer->address));
  if (!fits)
    return call.done(unknownValue());
  return call.done(*fits ? pointer : nullValue());
}

std::optional<Outcomes> alternativeIndex(Call &call, const Effect &) {
  const Name variant = call.fact.operands[0].type;
  const std::vector<Name> all = call.machine.types.parts(variant);
  const Value held = call.object();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (holds(call.machine.types, variant, all[i], held).value_or(false))
      return call.done(scalarValue(intTerm(static_cast<std::int64_t>(i))));
  return call.done(call.machine.unknownResult(call));
}

// What typeid says of what an any holds.
std::optional<Outcomes> heldType(Call &call, const Effect &) {
  const Value held = call.object();
  const Name name = is(held, ValueKind::Tensor)                                ? Name("at::Tensor")
                    : is(held, ValueKind::Null)                                ? Name("void")
                    : is(held, ValueKind::Record) || is(held, ValueKind::List) ? held->type
                                                                               : Name();
  const Address type = call.machine.allocate(call.row, call.frame, call.fact, call.resultType());
  call.machine.memory.write(call.row, type, name.empty() ? unknownValue() : scalarValue(textTerm(name)));
  return call.done(addressValue(type));
}

// emplace<T>(args...), make_any<T>(args...): the object that is made.
Outcomes makeHeld(Call &call, Name type) {
  Machine &machine = call.machine;
  const bool isMade = machine.types.classOf(type) == TypeClass::Record;
  const bool isCopy = call.argCount() == 1 && isOf(machine.types, type, call.arg(0)) == true;
  if (call.argCount() == 0 && !isMade)
    return call.done(machine.defaultObject(type));
  if (!isMade || isCopy)
    return call.done(call.argCount() == 1 ? call.arg(0) : unknownValue());
  const Address made = machine.allocate(call.row, call.frame, call.fact, type);
  Outcomes outcomes;
  for (Row &row : machine.construct(call.frame, call.fact, call.row, type, made, call.forwardedFrom(0))) {
    Value value = machine.memory.read(row, made);
    outcomes.push_back({std::move(row), std::move(value)});
  }
  return outcomes;
}

Outcomes putHeld(Call &call, Outcomes values) {
  const Address where = call.objectAddress();
  for (Outcome &outcome : values) {
    call.machine.memory.write(outcome.row, where, outcome.result);
    outcome.result = call.fact.resultIsAddress ? addressValue(where) : unknownValue();
  }
  return values;
}

std::optional<Outcomes> makeAny(Call &call, const Effect &) {
  return call.fact.templateTypes.empty() ? std::nullopt
                                         : std::optional(makeHeld(call, call.fact.templateTypes[0]));
}

std::optional<Outcomes> emplaceAlternative(Call &call, const Effect &) {
  return putHeld(call, makeHeld(call, alternative(call)));
}

std::optional<bool> holdsNamed(const Call &call) {
  return holds(call.machine.types, call.fact.operands[0].type, alternative(call), call.operand(0));
}

std::optional<Outcomes> holdsAlternative(Call &call, const Effect &) {
  const std::optional<bool> fits = holdsNamed(call);
  return call.done(fits ? scalarValue(intTerm(*fits)) : call.machine.unknownResult(call));
}

std::optional<Outcomes> getAlternative(Call &call, const Effect &) {
  if (!holdsVariant(call, 0))
    return std::nullopt;
  if (call.machine.types.classOf(call.fact.operands[0].type) == TypeClass::Pointer)
    return getIf(call, alternative(call));
  if (holdsNamed(call) == false) // throws std::bad_variant_access
    return Outcomes();
  const Address where = call.addressOf(0);
  return call.done(call.fact.resultIsAddress && where.valid() ? addressValue(where) : call.operand(0));
}

// The alternative it is made of; of the first, when it is made of nothing. An any is empty then.
std::optional<Outcomes> makeVariant(const Making &making, const Effect &) {
  const Machine &machine = making.call.machine;
  const std::vector<Name> all = machine.types.parts(making.type);
  if (making.args.size() == 1)
    return making.done(making.arg(0));
  if (!making.args.empty()) { // a tag that names the alternative, what it is made of
    const Value tag = making.arg(0), given = making.arg(1);
    const bool isPlain = making.args.size() == 2 && !is(given, ValueKind::Record) &&
                         is(tag, ValueKind::Record) &&
                         models::effect(machine.types.templateOf(tag->type).view(), "in_place");
    return making.done(isPlain ? given : unknownValue());
  }
  return making.done(all.empty()                                          ? nullValue()
                     : machine.types.classOf(all[0]) == TypeClass::Scalar ? scalarValue(intTerm(0))
                                                                          : machine.defaultObject(all[0]));
}

} // namespace

Words variantWords() {
  return {{{"make_any", makeAny},
           {"emplace_alternative", emplaceAlternative},
           {"holds_alternative", holdsAlternative},
           {"get_alternative", getAlternative},
           {"alternative_index", alternativeIndex},
           {"held_type", heldType}},
          {},
          {{"make_variant", makeVariant}}};
}

} // namespace devicetidy
