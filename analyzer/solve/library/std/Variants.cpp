//===- Variants.cpp - std::variant: which alternative is held ---===//
//
// A variant's value is the value of the alternative it holds.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/std/Variants.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/torch/Devices.h"

namespace devicetidy {

std::optional<bool> isOf(const Types &types, Name type, const Value &value) {
  const TypeClass wanted = types.classOf(type);
  switch (value->kind) {
  case ValueKind::Tensor:
    return wanted == TypeClass::Tensor;
  case ValueKind::Device:
    return wanted == TypeClass::Device;
  case ValueKind::Options:
    return wanted == TypeClass::Options;
  case ValueKind::List:
    if (wanted != TypeClass::List)
      return false;
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
  default:
    return std::nullopt;
  }
}

namespace {

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
    const Type *type = call.machine.program.type(variant);
    const auto number = static_cast<std::size_t>(call.fact.templateNumbers[0]);
    return type && number < type->args.size() ? type->args[number] : Name();
  }
  return call.fact.templateTypes.empty() ? Name() : call.fact.templateTypes[0];
}

Outcomes getIf(Call &call, Name type) {
  const Value pointer = call.arg(0);
  if (!is(pointer, ValueKind::Address))
    return call.done(unknownValue());
  const std::optional<bool> fits =
      isOf(call.machine.types, type, call.machine.memory.read(call.row, pointer->address));
  if (!fits)
    return call.done(unknownValue());
  return call.done(*fits ? pointer : nullValue());
}

} // namespace

std::optional<Outcomes> modelVariant(Call &call) {
  const std::string_view name = call.fact.name.view();
  if (!isOneOf(name, {"std::get", "std::get_if", "std::holds_alternative"}) || !holdsVariant(call, 0))
    return std::nullopt;
  const Name type = alternative(call);
  if (name == "std::get_if")
    return getIf(call, type);
  const Value held = call.operand(0);
  const std::optional<bool> fits = isOf(call.machine.types, type, held);
  if (name == "std::holds_alternative")
    return call.done(fits ? scalarValue(intTerm(*fits)) : call.machine.unknownResult(call));
  if (fits && !*fits) // throws std::bad_variant_access
    return Outcomes();
  const Address where = call.addressOf(0);
  return call.done(call.fact.resultIsAddress && where.valid() ? addressValue(where) : held);
}

std::optional<Outcomes> modelVariantMethod(Call &call, std::string_view method) {
  if (method != "operator=" && method != "emplace")
    return std::nullopt;
  const Value value = call.argCount() == 1 ? call.arg(0) : unknownValue();
  call.machine.memory.write(call.row, call.objectAddress(), value);
  return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : value);
}

} // namespace devicetidy
