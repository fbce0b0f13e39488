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
    return row.resolve(applyTerm(op::equal, {a->term, b->term}));
  if (is(a, ValueKind::Device) && is(b, ValueKind::Device))
    return sameDeviceTerm(row.resolve(a->placement), row.resolve(b->placement));
  if (is(a, ValueKind::Address) && is(b, ValueKind::Address)) {
    if (areApart(a->address, b->address))
      return intTerm(0);
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

// The pointer may share an owner with another and point elsewhere.
std::optional<Outcomes> makePointer(const Making &making, const Effect &) {
  const bool sharesOwner = making.args.size() == 2 && is(making.arg(1), ValueKind::Address);
  return making.done(making.args.empty() ? nullValue() : making.arg(sharesOwner));
}

} // namespace

Words pointerWords() {
  return {{{"element_of_array", elementOfArray}, {"make_pointee", makePointee}},
          {{"hold_equal", holdEqual}},
          {{"make_pointer", makePointer}}};
}

} // namespace devicetidy
