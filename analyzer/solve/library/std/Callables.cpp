//===- Callables.cpp - running what a value of the program calls ---===//
#include "analyzer/solve/library/std/Callables.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/solve/library/std/Variants.h"

#include <algorithm>

namespace devicetidy {
namespace {

constexpr const char *calleeField = "@callee";   // std::bind: what it calls
constexpr const char *boundField = "@arguments"; // std::bind: with which arguments
constexpr const char *negatedField = "@negated"; // std::not_fn: of which predicate
constexpr std::string_view placeholder = "std::placeholders::_"; // and its number

// A closure's captures are the fields of its `this`. One without a place of its own gets one for the call.
Address closureObject(Machine &machine, const Frame &frame, Row &row, const Value &closure,
                      const Address &where) {
  if (where.valid() && is(machine.memory.read(row, where), ValueKind::Function))
    return where;
  const RootId root =
      machine.memory.heap(applyTerm("closure", {textTerm(closure->function), intTerm(frame.depth)}), 0, {});
  row.store.set(root, closure);
  return {root, nullptr};
}

Address addressOfObject(Call &call, Row &row, const Argument &object) {
  if (is(object.value, ValueKind::Address)) // a pointer, smart pointer or reference wrapper
    return object.value->address;
  if (object.address.valid())
    return object.address;
  Address temporary = call.machine.allocate(row, call.frame, call.fact, object.value->type);
  call.machine.memory.write(row, temporary, object.value);
  return temporary;
}

Outcomes runFunction(Call &call, Row row, const Function &callee, const Value &callable,
                     const std::vector<Argument> &args, const Address &where) {
  if (callee.isLambda || !callable->fields.empty()) {
    const Address self = closureObject(call.machine, call.frame, row, callable, where);
    return invokeForwarded(call, std::move(row), callee, self, args);
  }
  const bool isMethod = !callee.className.empty() && !callee.isStatic;
  if (!isMethod || args.empty())
    return invokeForwarded(call, std::move(row), callee, {}, args);
  const Address self = addressOfObject(call, row, args[0]);
  return invokeForwarded(call, std::move(row), callee, self, {args.begin() + 1, args.end()});
}

// What a library function called `name` does with `args`, as if the program called it here.
Outcomes runLibrary(Call &call, Row row, Name name, const std::vector<Argument> &args) {
  Fact fact = call.fact;
  fact.name = name;
  fact.target = {};
  fact.isIndirect = fact.isVirtual = fact.isDiscarded = false;
  fact.hasObject = startsWith(name.view(), "at::Tensor::");
  fact.operands.clear();
  for (const Argument &arg : args) {
    Operand operand;
    operand.where = call.fact.where;
    operand.text = arg.text;
    operand.reg = static_cast<Reg>(row.registers.size());
    operand.type = is(arg.value, ValueKind::Tensor) ? Name("at::Tensor") : Name();
    row.registers.push_back(arg.value);
    fact.operands.push_back(std::move(operand));
  }
  Call inner{call.machine, call.frame, row, fact, fact.hasObject ? std::size_t(1) : std::size_t(0)};
  return call.machine.callLibrary(inner);
}

// std::bind: placeholders stand for what the caller gives.
Outcomes runBound(Call &call, Row row, const Value &bound, const std::vector<Argument> &given) {
  std::vector<Argument> args;
  for (const Value &value : bound->fields.at(boundField)->elements) {
    if (!is(value, ValueKind::Record) || !startsWith(value->type.view(), placeholder)) {
      args.push_back({value, {}});
      continue;
    }
    const std::size_t number =
        static_cast<std::size_t>(std::atoi(value->type.str().c_str() + placeholder.size()));
    args.push_back(number >= 1 && number <= given.size() ? given[number - 1] : Argument{unknownValue(), {}});
  }
  return callValue(call, std::move(row), bound->fields.at(calleeField), args);
}

// The placeholder that has this type, which only std::placeholders::_1 and so on have; empty for other types.
Name placeholderOf(const Program &program, Name type) {
  for (const auto &[id, global] : program.globals)
    if (global.type == type && startsWith(global.name.view(), placeholder))
      return global.name;
  return {};
}

Value bind(const Call &call, bool isFront) {
  std::vector<Value> args;
  for (std::size_t i = 1; i < call.argCount(); ++i) {
    const Name open = placeholderOf(call.machine.program, call.fact.operands[i].type);
    args.push_back(open.empty() ? call.arg(i) : recordValue(open));
  }
  for (unsigned i = 1; isFront && i <= 4; ++i)
    args.push_back(recordValue(Name(std::string(placeholder) + std::to_string(i))));
  return functionValue({}, {{calleeField, call.arg(0)}, {boundField, listValue({}, std::move(args))}});
}

// std::not_fn: the opposite of what the predicate says.
Outcomes runNegated(Call &call, Row row, const Value &negated, const std::vector<Argument> &args) {
  Outcomes outcomes = callValue(call, std::move(row), negated->fields.at(negatedField), args);
  for (Outcome &outcome : outcomes)
    outcome.result = is(outcome.result, ValueKind::Scalar)
                         ? scalarValue(notTerm(outcome.row.resolve(outcome.result->term)))
                         : unknownValue();
  return outcomes;
}

// The one of `candidates` that takes an argument like `value`; null when that cannot be told.
const Function *fitting(const Machine &machine, const std::vector<const Function *> &candidates,
                        const Value &value) {
  const Function *found = nullptr;
  for (const Function *candidate : candidates) {
    const std::optional<bool> fits = isOf(machine.types, candidate->locals[0].type, value);
    if (!fits)
      return nullptr;
    if (*fits)
      found = candidate;
  }
  return found;
}

// The call operator of a generic lambda for an argument like `value`: its instantiations share their class.
const Function *instanceFor(const Machine &machine, const Function &any, const Value &value) {
  std::vector<const Function *> instances;
  for (Name id : machine.program.order)
    if (const Function *each = machine.program.function(id);
        each->className == any.className && each->isLambda && each->paramCount == 1)
      instances.push_back(each);
  return fitting(machine, instances, value);
}

// The call operator of a class that has one for each alternative.
const Function *overloadFor(const Machine &machine, Name type, const Value &value) {
  std::vector<const Function *> overloads;
  if (const Type *record = machine.program.type(type))
    for (Name id : record->methods)
      if (const Function *each = machine.program.function(id);
          each && each->hasBody && each->paramCount == 1 && lastPart(each->name.view()) == "operator()")
        overloads.push_back(each);
  return fitting(machine, overloads, value);
}

Outcomes visit(Call &call) {
  const Value visitor = call.arg(0);
  const Argument held = call.argCount() == 2 ? call.forwarded(1) : Argument{unknownValue(), {}};
  if (is(visitor, ValueKind::Record))
    if (const Function *overload = overloadFor(call.machine, visitor->type, held.value)) {
      Row row = call.row;
      const Address self = addressOfObject(call, row, {visitor, call.addressOf(0)});
      return invokeForwarded(call, std::move(row), *overload, self, {held});
    }
  std::vector<Value> closures{visitor};
  if (is(visitor, ValueKind::Record)) // a class made of lambdas holds each under the name of its type
    for (const auto &[name, part] : visitor->fields)
      closures.push_back(part);
  for (const Value &closure : closures) {
    const Function *any =
        is(closure, ValueKind::Function) ? call.machine.program.function(closure->function) : nullptr;
    if (const Function *instance = any ? instanceFor(call.machine, *any, held.value) : nullptr)
      return callValue(call, call.row, functionValue(instance->id, closure->fields), {held});
  }
  return call.done(call.machine.unknownResult(call));
}

// The member that a pointer to a data member, whose value is its name, stands for; empty for others.
Name memberNamedBy(const Row &row, const Value &callable) {
  const std::optional<Name> text =
      is(callable, ValueKind::Scalar) ? textOf(row.resolve(callable->term)) : std::nullopt;
  const std::size_t colon = text ? text->view().rfind(':') : std::string_view::npos;
  return colon == std::string_view::npos ? Name() : Name(text->view().substr(colon + 1));
}

bool isCallable(const Call &call, std::size_t i) {
  const Value value = call.arg(i);
  if (is(value, ValueKind::Function))
    return true;
  return is(value, ValueKind::Record) && findMethod(call.machine, value->type, "operator()");
}

// The first callable among the arguments, with those behind it as its arguments.
std::optional<Outcomes> runFirst(Call &call) {
  for (std::size_t i = 0; i < call.argCount(); ++i)
    if (isCallable(call, i))
      return callValue(call, call.row, call.arg(i), call.forwardedFrom(i + 1));
  return std::nullopt;
}

// Pools and parallel loops hand their callable arguments of their own (a range of indices).
std::optional<Outcomes> runLast(Call &call) {
  for (std::size_t i = call.argCount(); i-- > 0;)
    if (isCallable(call, i)) {
      std::vector<Argument> args = call.forwardedFrom(i + 1);
      const Function *callee = call.machine.program.function(call.arg(i)->function);
      while (callee && args.size() < callee->paramCount)
        args.push_back({unknownValue(), {}});
      return callValue(call, call.row, call.arg(i), args);
    }
  return std::nullopt;
}

} // namespace

Outcomes callValue(Call &call, Row row, const Value &callable, const std::vector<Argument> &args,
                   const Address &where) {
  Machine &machine = call.machine;
  if (is(callable, ValueKind::Address)) // a reference wrapper, a pointer to a function object
    return callValue(call, row, machine.memory.read(row, callable->address), args, callable->address);
  if (is(callable, ValueKind::Function)) {
    if (callable->fields.count(calleeField))
      return runBound(call, std::move(row), callable, args);
    if (callable->fields.count(negatedField))
      return runNegated(call, std::move(row), callable, args);
    if (const Function *callee = machine.program.function(callable->function); callee && callee->hasBody)
      return runFunction(call, std::move(row), *callee, callable, args, where);
    if (!callable->type.empty())
      return runLibrary(call, std::move(row), callable->type, args);
  }
  if (is(callable, ValueKind::Record))
    if (const Function *callee = findMethod(machine, callable->type, "operator()")) {
      Address self = where;
      if (!self.valid() || !same(machine.memory.read(row, self), callable)) {
        self = machine.allocate(row, call.frame, call.fact, callable->type);
        machine.memory.write(row, self, callable);
      }
      return invokeForwarded(call, std::move(row), *callee, self, args);
    }
  if (const Name member = memberNamedBy(row, callable); !member.empty() && !args.empty()) {
    const Address part = addressOfObject(call, row, args[0]).field(member);
    Call inRow{machine, call.frame, row, call.fact, call.first};
    return inRow.done(call.fact.resultIsAddress ? addressValue(part) : machine.memory.read(row, part));
  }
  ++machine.solution.stats.unknownCalls["(callable that is not known)"];
  Call inRow{machine, call.frame, row, call.fact, call.first};
  return inRow.done(machine.unknownResult(inRow));
}

std::optional<Outcomes> modelCallables(Call &call) {
  const std::string_view name = call.fact.name.view();
  if (name == "std::bind" || name == "std::bind_front")
    return call.done(bind(call, name == "std::bind_front"));
  if (name == "std::mem_fn")
    return call.done(call.arg(0));
  if (name == "std::not_fn")
    return call.done(functionValue({}, {{negatedField, call.arg(0)}}));
  if (name == "std::visit")
    return visit(call);
  if (name == "std::invoke" && call.argCount() > 1 && !memberNamedBy(call.row, call.arg(0)).empty())
    return callValue(call, call.row, call.arg(0), call.forwardedFrom(1));
  if (isOneOf(name, {"std::async", "std::invoke", "std::call_once"}))
    return runFirst(call);
  if (name == "at::parallel_for" || lastPart(name) == "submit" || lastPart(name) == "enqueue" ||
      lastPart(name) == "step")
    return runLast(call);
  return std::nullopt;
}

std::optional<Outcomes> constructThread(Call &call, Name type, const std::vector<Argument> &args) {
  if (!isOneOf(type.view(), {"std::thread", "std::jthread"}) || args.empty())
    return std::nullopt;
  const Value &callable = args[0].value;
  if (!is(callable, ValueKind::Function) && !is(callable, ValueKind::Record))
    return std::nullopt;
  return callValue(call, call.row, callable, {args.begin() + 1, args.end()});
}

std::optional<Outcomes> modelFunctionObject(Call &call, std::string_view method) {
  if (method == "operator()")
    return callValue(call, call.row, call.object(), call.forwardedFrom(0), call.objectAddress());
  if (method == "operator=") {
    call.machine.memory.write(call.row, call.objectAddress(), call.arg(0));
    return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : call.arg(0));
  }
  if (method == "operator bool") {
    const std::optional<bool> nothing = holdsNothing(call.row, call.object());
    return call.done(nothing ? scalarValue(intTerm(!*nothing)) : call.machine.unknownResult(call));
  }
  return std::nullopt;
}

} // namespace devicetidy
