//===- FunctionPrimitives.cpp - what model bodies ask of functions and operators ---===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/ModelBodies.h"
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/std/Iterators.h"
#include "analyzer/solve/library/std/Words.h"

namespace devicetidy {
namespace {

const Name elementText("an element of the range");

Outcomes applyOperator(Call &call, Name op, std::size_t first);

// The operator that a function object of the library stands for; empty when it is none.
Name operatorOf(const Machine &machine, const Value &callable) {
  const bool isNamed = is(callable, ValueKind::Function) || is(callable, ValueKind::Record);
  const models::Effect *said =
      isNamed ? models::effect(machine.types.templateOf(callable->type).view(), "operator") : nullptr;
  return said ? Name(said->detail()) : Name();
}

// What one call of a callable gives; a reference that it returns is what it refers to.
Outcomes callFunction(Call &call) {
  const Address where = call.addressOf(0);
  const Value callable = call.arg(0);
  if (const Name op = operatorOf(call.machine, callable); op && call.argCount() == 3)
    return applyOperator(call, op, 1);
  Site site(call);
  std::vector<Argument> args;
  for (std::size_t i = 1; i < call.argCount(); ++i) {
    args.push_back(call.forwarded(i));
    args.back().text = elementText;
  }
  Outcomes outcomes = callValue(site.call, call.row, callable, args, where);
  const Function *callee =
      is(callable, ValueKind::Function) ? call.machine.program.function(callable->function) : nullptr;
  if (callee && callee->resultIsReference)
    for (Outcome &outcome : outcomes)
      if (is(outcome.result, ValueKind::Address))
        outcome.result = call.machine.memory.read(outcome.row, outcome.result->address);
  return outcomes;
}

Outcomes testFunction(Call &call) {
  Outcomes outcomes = callFunction(call);
  for (Outcome &outcome : outcomes)
    if (!is(outcome.result, ValueKind::Scalar))
      outcome.result = is(outcome.result, ValueKind::Null)      ? scalarValue(intTerm(0))
                       : is(outcome.result, ValueKind::Address) ? scalarValue(intTerm(1))
                                                                : scalarValue(call.machine.freshScalar(call));
  return outcomes;
}

// An operator between two values, arguments `first` and the next: built in, of tensors, or one of the
// program's own.
Outcomes applyOperator(Call &call, Name op, std::size_t first) {
  const Value a = call.arg(first), b = call.arg(first + 1);
  Argument left = call.forwarded(first), right = call.forwarded(first + 1);
  if (call.frame.site)
    left.text = right.text = elementText;
  if (is(a, ValueKind::Scalar) && is(b, ValueKind::Scalar))
    return call.done(operatorValue(call.row, op, {a, b}, /*areIntegers=*/false));
  const std::string name = "operator" + op.str();
  if (is(a, ValueKind::Tensor) || is(b, ValueKind::Tensor)) {
    Site site(call);
    site.fact.type = "at::Tensor"; // whatever the algorithm gives
    return callValue(site.call, call.row, libraryFunction("at::" + name), {left, right});
  }
  if (is(a, ValueKind::Record)) {
    Site site(call);
    if (const Function *method = findMethod(call.machine, a->type, name))
      return invokeForwarded(site.call, call.row, *method, call.addressOf(call.first + first), {right});
    for (const auto &[id, function] : call.machine.program.functions)
      if (function.hasBody && function.className.empty() && function.paramCount == 2 &&
          lastPart(function.name.view()) == name && function.locals[0].type == a->type)
        return invokeForwarded(site.call, call.row, function, {}, {left, right});
    if (std::optional<Value> compared = compareRecords(call, op, a, b))
      return call.done(*compared);
  }
  return call.done(op == op::plus || op == op::minus || op == op::times
                       ? unknownValue()
                       : scalarValue(call.machine.freshScalar(call)));
}

// Is `a` less than `b`? Nothing where that is not known. A null stands for an empty optional.
std::optional<bool> isLess(const Call &call, const Value &a, const Value &b) {
  if (is(a, ValueKind::Unknown) || is(b, ValueKind::Unknown))
    return std::nullopt;
  if (is(a, ValueKind::Null) || is(b, ValueKind::Null))
    return !is(b, ValueKind::Null);
  const std::optional<Value> compared = compareRecords(call, op::less, a, b);
  const auto less = compared ? constantOf((*compared)->term) : std::nullopt;
  return less ? std::optional<bool>(*less != 0) : std::nullopt;
}

// What `<=>` says, as a number below, at or above zero.
Outcomes order(Call &call) {
  const Value a = call.arg(0), b = call.arg(1);
  const std::optional<bool> isBelow = isLess(call, a, b), isAbove = isLess(call, b, a);
  const bool isKnown = isBelow && isAbove;
  return call.done(scalarValue(isKnown ? intTerm(*isAbove - *isBelow) : call.machine.freshScalar(call)));
}

// `less(x, y)` of values of the library's classes. An ordering is compared with zero, which has a class of
// the library's own.
Outcomes isLessThan(Call &call) {
  const auto valueAt = [&](std::size_t i) {
    static constexpr std::string_view ordering = "ordering";
    const auto isOrdering = [&](std::size_t operand) {
      return operand < call.fact.operands.size() &&
             call.machine.types.kindOf(call.fact.operands[call.first + operand].type) == ordering;
    };
    return isOrdering(1 - i) && !isOrdering(i) ? scalarValue(intTerm(0)) : call.arg(i);
  };
  const Value a = valueAt(0), b = valueAt(1);
  if (const std::optional<bool> less = isLess(call, a, b))
    return call.done(scalarValue(intTerm(*less)));
  const bool areNumbers = is(a, ValueKind::Scalar) && is(b, ValueKind::Scalar);
  return call.done(areNumbers ? operatorValue(call.row, op::less, {a, b}, /*areIntegers=*/false)
                              : scalarValue(call.machine.freshScalar(call)));
}

// What compares the elements of an ordered container: what it was given, or what its type names.
Value comparatorOf(const Call &call) {
  const Value container = call.arg(0);
  if (const auto given = container->fields.find(hidden::comparator); given != container->fields.end())
    return given->second;
  const Machine &machine = call.machine;
  const Type *type = machine.program.type(container->type);
  for (Name id : type ? type->args : std::vector<Name>()) {
    const Type *argument = machine.program.type(id);
    if (!argument || argument->kind != TypeKind::Record)
      continue;
    if (const Name op = operatorOf(machine, recordValue(id)); op == op::less || op == op::greater)
      return recordValue(id);
    if (argument->isLambda)
      for (const auto &[name, function] : machine.program.functions)
        if (function.className == id && function.isLambda)
          return functionValue(name, {});
    const Function *call = argument->isProject ? findMethod(machine, id, "operator()") : nullptr;
    if (call && call->paramCount == 2)
      return recordValue(id);
  }
  return libraryFunction("std::less");
}

Outcomes setComparator(Call &call) {
  call.machine.memory.write(call.row, call.addressOf(0),
                            withField(call.arg(0), hidden::comparator, call.arg(1)));
  return call.done(unknownValue());
}

} // namespace

Words functionWords() {
  return {{},
          {{"call", callFunction},
           {"test", testFunction},
           {"comparator", [](Call &call) { return call.done(comparatorOf(call)); }},
           {"set_comparator", setComparator},
           {"plus", [](Call &call) { return applyOperator(call, op::plus, 0); }},
           {"minus", [](Call &call) { return applyOperator(call, op::minus, 0); }},
           {"times", [](Call &call) { return applyOperator(call, op::times, 0); }},
           {"equal", [](Call &call) { return applyOperator(call, op::equal, 0); }},
           {"less", [](Call &call) { return applyOperator(call, op::less, 0); }},
           {"is_less", isLessThan},
           {"order", order},
           {"less_function", [](Call &call) { return call.done(libraryFunction("std::less")); }},
           {"equal_function", [](Call &call) { return call.done(libraryFunction("std::equal_to")); }},
           {"plus_function", [](Call &call) { return call.done(libraryFunction("std::plus")); }},
           {"minus_function", [](Call &call) { return call.done(libraryFunction("std::minus")); }}},
          {}};
}

} // namespace devicetidy
