//===- Pointers.cpp - smart pointers, comparisons ---------===//
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/solve/library/std/Iterators.h"
#include "analyzer/solve/library/std/Ownership.h"
#include "analyzer/solve/library/std/Strings.h"

#include <algorithm>

namespace devicetidy {
namespace {

std::optional<Outcomes> modelPointer(Call &call, std::string_view method) {
  Value held = call.object();
  const bool isWeak = startsWith(call.fact.operands[0].type.view(), "std::weak_ptr<");
  if (isOneOf(method, {"lock", "expired", "use_count"}))
    return modelOwnership(call, method);
  const bool isReference = call.fact.name.view().find("::operator ") != std::string_view::npos &&
                           call.fact.resultIsAddress; // a reference wrapper becomes a reference
  if (isReference || isOneOf(method, {"operator->", "get", "operator*", "release"}))
    return call.done(held);
  if (method == "operator()")
    return callValue(call, call.row, held, call.forwardedFrom(0));
  if (method == "operator bool") {
    const std::optional<bool> nothing = holdsNothing(call.row, held);
    return call.done(nothing ? scalarValue(intTerm(!*nothing)) : call.machine.unknownResult(call));
  }
  if (method == "operator=") {
    Value value = call.argCount() ? call.arg(0) : nullValue();
    call.machine.memory.write(call.row, call.objectAddress(), value);
    return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : value);
  }
  if (method == "reset") {
    if (!isWeak)
      call.machine.endGuards(call.row, held, call.fact.operands[0].type);
    call.machine.memory.write(call.row, call.objectAddress(), call.argCount() ? call.arg(0) : nullValue());
    return call.done(unknownValue());
  }
  if (method == "operator[]" && is(held, ValueKind::Address) && is(call.arg(0), ValueKind::Scalar))
    return call.done(addressValue(held->address.element(call.row.resolve(call.arg(0)->term))));
  return std::nullopt;
}

// make_shared<T>(args...), make_unique, make_intrusive.
Outcomes makeObject(Call &call) {
  Name type = call.fact.templateTypes.empty() ? call.machine.types.inner(call.resultType())
                                              : call.fact.templateTypes[0];
  if (Name pointee = call.machine.types.inner(call.resultType()); !pointee.empty())
    type = pointee;
  Address where = call.machine.allocate(call.row, call.frame, call.fact, type);
  const Type *made = call.machine.program.type(type);
  if (made && made->kind == TypeKind::Array) {
    call.machine.memory.write(call.row, where, call.machine.defaultArray(call.row, type, call.arg(0)));
    return call.done(addressValue(where));
  }
  Outcomes outcomes;
  for (Row &row : call.machine.construct(call.frame, call.fact, call.row, type, where, call.forwardedFrom(0)))
    outcomes.push_back({std::move(row), addressValue(where)});
  return outcomes;
}

// Objects of their own, none of which stands for several.
bool areApart(const Address &a, const Address &b) {
  auto isOne = [](const Address &address) {
    return kindOf(address.root) != RootKind::Outside && kindOf(address.root) != RootKind::Global &&
           !address.path;
  };
  return isOne(a) && isOne(b) && a.root != b.root;
}

// Are two values of wrappers, pointers or scalars equal? Null when that is not known.
Term equalTerm(const Row &row, const Value &a, const Value &b) {
  if (is(a, ValueKind::Null) || is(b, ValueKind::Null)) {
    const std::optional<bool> nothing = holdsNothing(row, is(a, ValueKind::Null) ? b : a);
    return nothing ? intTerm(*nothing) : nullptr;
  }
  if (is(a, ValueKind::Scalar) && is(b, ValueKind::Scalar))
    return row.resolve(applyTerm("==", {a->term, b->term}));
  if (is(a, ValueKind::Device) && is(b, ValueKind::Device))
    return sameDeviceTerm(row.resolve(a->placement), row.resolve(b->placement));
  if (is(a, ValueKind::Address) && is(b, ValueKind::Address)) {
    if (areApart(a->address, b->address))
      return intTerm(0);
    const Value equal = operatorValue(row, "==", {a, b}, /*areIntegers=*/false);
    return is(equal, ValueKind::Scalar) ? equal->term : nullptr;
  }
  return nullptr;
}

std::optional<Outcomes> modelFreePointer(Call &call, std::string_view name) {
  if (isOneOf(name, {"std::make_shared", "std::make_unique", "c10::make_intrusive", "std::allocate_shared"}))
    return makeObject(call);
  if (isOneOf(name, {"std::dynamic_pointer_cast", "std::static_pointer_cast", "std::const_pointer_cast",
                     "std::reinterpret_pointer_cast"}))
    return call.done(call.operand(0));
  if (std::optional<Outcomes> outcomes = modelStringFunction(call, name))
    return outcomes;
  if (isOneOf(name, {"std::operator==", "std::operator!=", "c10::operator==", "c10::operator!="}) &&
      call.argCount() == 2) {
    const Value a = call.operand(0), b = call.operand(1);
    Term equal = equalTerm(call.row, a, b);
    if (!equal)
      if (const std::optional<Value> compared = compareRecords(call, "==", a, b))
        equal = (*compared)->term;
    if (!equal)
      return call.done(call.machine.unknownResult(call));
    return call.done(scalarValue(name.find("!=") != std::string_view::npos ? notTerm(equal) : equal));
  }
  return std::nullopt;
}

} // namespace

std::optional<Outcomes> modelPointers(Call &call) {
  std::string_view name = call.fact.name.view();
  if (!call.fact.hasObject)
    return modelFreePointer(call, name);
  if (call.fact.operands.empty())
    return std::nullopt;
  const std::string_view method = lastPart(name);
  // What std::bind and its like return has no name of its own: that it is a callable says its value.
  if (method == "operator()" && is(call.object(), ValueKind::Function))
    return modelFunctionObject(call, method);
  switch (call.machine.types.classOf(call.fact.operands[0].type)) {
  case TypeClass::Pointer:
    return modelPointer(call, method);
  case TypeClass::Function:
    return modelFunctionObject(call, method);
  case TypeClass::String:
    return modelString(call, method);
  case TypeClass::Holder:
    if (method == "operator=")
      return modelPointer(call, method);
    break;
  case TypeClass::Record:
    // The defaulted assignment of a record copies it.
    if (method == "operator=" && call.argCount() == 1 && !startsWith(name, "std::")) {
      call.machine.memory.write(call.row, call.objectAddress(), call.arg(0));
      return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : call.arg(0));
    }
    break;
  case TypeClass::Device:
  case TypeClass::Options:
  case TypeClass::AnyModule:
  case TypeClass::Example:
  case TypeClass::Scalar:
    if (method == "operator=") {
      call.machine.memory.write(call.row, call.objectAddress(), call.arg(0));
      return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : call.arg(0));
    }
    break;
  default:
    break;
  }
  return std::nullopt;
}

std::optional<Value> constructPointer(Call &call, Name type, const std::vector<Value> &args) {
  if (call.machine.types.classOf(type) != TypeClass::Pointer)
    return std::nullopt;
  if (args.empty())
    return nullValue();
  const bool sharesOwner = args.size() == 2 && is(args[1], ValueKind::Address); // and points elsewhere
  return args[sharesOwner ? 1 : 0];
}

} // namespace devicetidy
