//===- Objects.cpp - what all objects can do: hold a value, be given one, be reset ---===//
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/solve/library/std/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

Outcomes put(Call &call, const Value &value) {
  const Address where = call.objectAddress();
  call.machine.memory.write(call.row, where, value);
  return call.done(call.fact.resultIsAddress ? addressValue(where) : value);
}

// The assignment: the object becomes what it is given.
std::optional<Outcomes> assign(Call &call, const Effect &) { return put(call, call.arg(0)); }

// The defaulted assignment of a class of which nothing else is known.
std::optional<Outcomes> assignSame(Call &call, const Effect &) {
  if (call.argCount() != 1 || call.fact.operands[0].type != call.fact.operands[1].type)
    return std::nullopt;
  return put(call, call.arg(0));
}

// What the object stands for, which may be the place a pointer leads to. A module that is not known is one
// and the same from here on.
std::optional<Outcomes> held(Call &call, const Effect &) {
  Machine &machine = call.machine;
  const Address where = call.objectAddress();
  const Name inner = machine.types.inner(call.fact.operands[0].type);
  if (where.valid() && is(call.object(), ValueKind::Unknown) && machine.types.isModule(inner))
    machine.memory.write(call.row, where, machine.unseenModule(call, inner));
  return call.done(call.object());
}

// value() of an optional throws when there is none.
std::optional<Outcomes> checkedValue(Call &call, const Effect &) {
  if (is(call.object(), ValueKind::Null))
    return Outcomes();
  return std::nullopt;
}

// The argument itself: its place where it has one.
std::optional<Outcomes> sameArgument(Call &call, const Effect &) {
  return call.done(registerOf(call.row, call.fact.operands[0].reg));
}

// A field of the object.
std::optional<Outcomes> part(Call &call, const Effect &effect) {
  const Address where = call.objectAddress().field(Name(effect.detail()));
  return call.done(call.fact.resultIsAddress ? addressValue(where)
                                             : call.machine.memory.read(call.row, where));
}

// reset(), reset(p): what was held ends, device guards among it.
std::optional<Outcomes> reset(Call &call, const Effect &effect) {
  static constexpr std::string_view nothingEnds = "weak";
  const Name type = call.fact.operands[0].type;
  const Types &types = call.machine.types;
  const bool isPointer = types.classOf(type) == TypeClass::Pointer;
  if (effect.detail() != nothingEnds)
    call.machine.endGuards(call.row, call.object(), isPointer ? type : types.inner(type));
  return put(call, call.argCount() ? call.arg(0) : nullValue());
}

// Writes to a place. A pointer, or an object that stands for a reference, is followed: `f(Tensor *out)`.
Outcomes write(Call &call) {
  const Value held = call.arg(0);
  const Address where = is(held, ValueKind::Address) ? held->address : call.addressOf(0);
  if (where.valid())
    call.machine.memory.write(call.row, where, call.arg(1));
  return call.done(unknownValue());
}

// Does it hold anything?
Outcomes holds(Call &call) { return call.done(holdsSomething(call.row, call.arg(0))); }

Outcomes holdsTensor(Call &call) {
  return is(call.arg(0), ValueKind::Scalar) ? call.done(scalarValue(intTerm(0))) : holds(call);
}

// What it holds, and where somebody outside may have left it empty, also what is taken then.
Outcomes valueOr(Call &call) {
  const Value asked = holdsSomething(call.row, call.arg(0));
  const Term term = is(asked, ValueKind::Scalar) ? asked->term : nullptr;
  Outcomes outcomes;
  for (const std::size_t i : {0, 1}) {
    Row row = call.row;
    if (term ? row.assume(term, i == 0) : i == is(call.arg(0), ValueKind::Null))
      outcomes.push_back({std::move(row), call.arg(i)});
  }
  return outcomes;
}

// A wrapper of one value; several are a list.
std::optional<Outcomes> makeWrapped(const Making &making, const Effect &) {
  if (making.args.size() <= 1)
    return making.done(making.args.empty() ? nullValue() : making.arg(0));
  std::vector<Value> values;
  values.reserve(making.args.size());
  for (const Argument &arg : making.args)
    values.push_back(arg.value);
  return making.done(listValue(making.type, std::move(values)));
}

std::optional<Outcomes> makeRecord(const Making &making, const Effect &) {
  return making.done(recordValue(making.type));
}

// Whatever it is given the address of may be another afterwards.
std::optional<Outcomes> forgetWritten(Call &call, const Effect &) {
  call.machine.forgetWritten(call);
  return std::nullopt;
}

// Says something of a function or class that others ask for; the call itself is answered by its other rows.
std::optional<Outcomes> remark(Call &, const Effect &) { return std::nullopt; }

} // namespace

namespace {

// Has the code itself made or moved it? Then it is there; what a caller passes may hold nothing.
bool isFromOutside(const Value &value) {
  const bool isMade =
      value->history && (value->history->isOfResult || value->history->step.kind != StepKind::Parameter);
  return value->placement.kind == PlacementKind::Symbol && !isMade;
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
    return isFromOutside(value) ? std::nullopt : std::optional<bool>(false);
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

Value holdsSomething(const Row &row, const Value &value) {
  if (const std::optional<bool> nothing = holdsNothing(row, value))
    return scalarValue(intTerm(!*nothing));
  // One question, however often it is asked of what a caller has passed.
  const bool isPlaced = is(value, ValueKind::Tensor) || is(value, ValueKind::Device);
  return isPlaced && value->placement.index ? scalarValue(applyTerm(op::holds, {value->placement.index}))
                                            : unknownValue();
}

Words objectWords() {
  return {{{"assign", assign},
           {"assign_same", assignSame},
           {"held", held},
           {"not_null", checkedValue},
           {"same_argument", sameArgument},
           {"part", part},
           {"reset", reset},
           {"forget_written", forgetWritten},
           {"moved", remark},
           {"takes_moved", remark},
           {"leaves_moved", remark},
           {"ownership", remark},
           {"only_deletes", remark},
           {"operator", remark},
           {"ordered_by", remark},
           {"placeholder", remark},
           {"in_place", remark}},
          {{"write", write}, {"holds", holds}, {"holds_tensor", holdsTensor}, {"value_or", valueOr}},
          {{"make_wrapped", makeWrapped}, {"make_record", makeRecord}}};
}

} // namespace devicetidy
