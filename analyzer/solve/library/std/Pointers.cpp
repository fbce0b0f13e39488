//===- Pointers.cpp - smart pointers, comparisons ---------===//
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/solve/library/std/Iterators.h"
#include "analyzer/solve/library/std/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

// One of the elements that a pointer to an array leads to.
std::optional<Outcomes> elementOfArray(Call &call, const Effect &) {
  const Value held = call.object(), number = call.arg(0);
  if (!is(held, ValueKind::Address) || !is(number, ValueKind::Scalar))
    return std::nullopt;
  return call.done(addressValue(held->address.element(call.row.resolve(number->term))));
}

// make_shared<T>(args...), make_unique, make_intrusive.
std::optional<Outcomes> makePointee(Call &call, const Effect &) {
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

// Are two values of wrappers, pointers or scalars equal? Null when that is not known.
Term equalTerm(const Row &row, const Value &a, const Value &b) {
  if (is(a, ValueKind::Null) || is(b, ValueKind::Null)) {
    const std::optional<bool> nothing = holdsNothing(row, is(a, ValueKind::Null) ? b : a);
    return nothing ? intTerm(*nothing) : nullptr;
  }
  if (is(a, ValueKind::Scalar) && is(b, ValueKind::Scalar))
    return row.resolve(applyTerm(op::equal, {a->term, b->term}));
  if (is(a, ValueKind::Device) && is(b, ValueKind::Device))
    return sameDeviceTerm(row.resolve(a->placement), row.resolve(b->placement));
  if (is(a, ValueKind::Address) && is(b, ValueKind::Address)) {
    const Value equal = operatorValue(row, op::equal, {a, b}, /*areIntegers=*/false);
    return is(equal, ValueKind::Scalar) ? equal->term : nullptr;
  }
  return nullptr;
}

Outcomes holdEqual(Call &call) {
  const Value a = call.arg(0), b = call.arg(1);
  Term equal = equalTerm(call.row, a, b);
  if (!equal)
    if (const std::optional<Value> compared = compareRecords(call, op::equal, a, b))
      equal = (*compared)->term;
  return call.done(equal ? scalarValue(equal) : unknownValue());
}

// The object is what it was made as; one from outside may be of the wanted class.
std::optional<Outcomes> castObject(Call &call, const Effect &) {
  const Types &types = call.machine.types;
  const bool isReference = call.fact.resultIsAddress && !call.fact.operands.empty();
  const Value from = isReference ? addressValue(call.addressOf(0)) : call.arg(0);
  if (!is(from, ValueKind::Address) || call.fact.templateTypes.empty())
    return call.done(from);
  const Value object = call.machine.memory.read(call.row, from->address);
  const bool isMade =
      is(object, ValueKind::Record) && !object->origin && kindOf(from->address.root) != RootKind::Outside;
  if (isMade && types.derivesFrom(object->type, types.templateOf(call.fact.templateTypes[0]).view()))
    return call.done(from);
  if (isMade) // std::bad_cast
    return isReference ? Outcomes() : call.done(nullValue());
  Outcomes either = call.done(from);
  if (!isReference)
    either.push_back({call.row, nullValue()});
  return either;
}

// Is it code of the program, which may change more than the object when that ends?
bool isProjectsDeleter(const Machine &machine, const Value &deleter) {
  if (is(deleter, ValueKind::Record))
    return machine.types.isProject(deleter->type);
  const Function *function =
      is(deleter, ValueKind::Function) ? machine.program.function(deleter->function) : nullptr;
  return function && function->hasBody;
}

// The pointer may share an owner with another and point elsewhere. When its object ends is not followed: what
// a deleter changes then makes the rest a guess.
std::optional<Outcomes> makePointer(const Making &making, const Effect &) {
  for (std::size_t i = 1; i < making.args.size(); ++i)
    making.call.row.guessed |= isProjectsDeleter(making.call.machine, making.arg(i));
  const bool sharesOwner = making.args.size() == 2 && is(making.arg(1), ValueKind::Address);
  return making.done(making.args.empty() ? nullValue() : making.arg(sharesOwner));
}

} // namespace

Words pointerWords() {
  return {{{"element_of_array", elementOfArray}, {"make_pointee", makePointee}, {"cast_object", castObject}},
          {{"hold_equal", holdEqual}},
          {{"make_pointer", makePointer}}};
}

} // namespace devicetidy
