//===- Callables.cpp - running what a value of the program calls ---===//
#include "analyzer/solve/library/std/Callables.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/std/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

constexpr std::string_view callOperator = "operator()";

// A closure's captures are the fields of its `this`. One without a place of its own gets one for the call.
Address closureObject(Machine &machine, const Frame &frame, Row &row, const Value &closure,
                      const Address &where) {
  if (where.valid() && is(machine.memory.read(row, where), ValueKind::Function))
    return where;
  const RootId root =
      machine.memory.heap(applyTerm(op::closure, {textTerm(closure->function), intTerm(frame.depth)}), 0, {});
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
  fact.hasObject = call.machine.types.classOf(Name(scopeOf(name.view()))) == TypeClass::Tensor;
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
  for (const Value &value : bound->fields.at(hidden::arguments)->elements) {
    if (!is(value, ValueKind::Record) || value->type != hidden::placeholderType) {
      args.push_back({value, {}});
      continue;
    }
    const auto number = static_cast<std::size_t>(*constantOf(value->fields.at(hidden::where)->term));
    args.push_back(number >= 1 && number <= given.size() ? given[number - 1] : Argument{unknownValue(), {}});
  }
  return callValue(call, std::move(row), bound->fields.at(hidden::callee), args);
}

Value placeholder(std::int64_t number) {
  return recordValue(hidden::placeholderType, {{hidden::where, scalarValue(intTerm(number))}});
}

// An argument of std::bind: the placeholders are known by their names.
Value boundArgument(const Call &call, std::size_t i) {
  const Address where = call.addressOf(call.first + i);
  if (where.valid() && kindOf(where.root) == RootKind::Global && !where.path)
    if (const models::Effect *effect =
            models::effect(call.machine.memory.info(where.root).text.view(), "placeholder"))
      return placeholder(effect->args[0].number);
  return call.arg(i);
}

// std::bind, and std::bind_front, which hands on all further arguments.
std::optional<Outcomes> bind(Call &call, const Effect &effect) {
  std::vector<Value> args;
  for (std::size_t i = 1; i < call.argCount(); ++i)
    args.push_back(boundArgument(call, i));
  const std::int64_t further = effect.args.empty() ? 0 : effect.args[0].number;
  for (std::int64_t i = 1; i <= further; ++i)
    args.push_back(placeholder(i));
  return call.done(functionValue(
      {}, {{hidden::callee, call.arg(0)}, {hidden::arguments, listValue({}, std::move(args))}}));
}

// std::not_fn: the opposite of what the predicate says.
std::optional<Outcomes> negate(Call &call, const Effect &) {
  return call.done(functionValue({}, {{hidden::negated, call.arg(0)}}));
}

Outcomes runNegated(Call &call, Row row, const Value &negated, const std::vector<Argument> &args) {
  Outcomes outcomes = callValue(call, std::move(row), negated->fields.at(hidden::negated), args);
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
          each && each->hasBody && each->paramCount == 1 && lastPart(each->name.view()) == callOperator)
        overloads.push_back(each);
  return fitting(machine, overloads, value);
}

std::optional<Outcomes> visit(Call &call, const Effect &) {
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
  return is(value, ValueKind::Record) && findMethod(call.machine, value->type, callOperator);
}

// The current GPU is that of a thread (CUDA C++ Programming Guide, "Device Selection"): a new one begins with
// the first, and what it sets ends with it.
Outcomes callOnThread(Call &call, const Value &callable, const std::vector<Argument> &args) {
  Row row = call.row;
  row.currentDevice = currentCudaIndex();
  Outcomes outcomes = callValue(call, std::move(row), callable, args);
  for (Outcome &outcome : outcomes)
    outcome.row.currentDevice = call.row.currentDevice;
  return outcomes;
}

// call_last(thread): another thread does.
Outcomes callAsSaid(Call &call, const Effect &effect, const Value &callable,
                    const std::vector<Argument> &args) {
  return effect.says("thread") ? callOnThread(call, callable, args)
                               : callValue(call, call.row, callable, args);
}

// The first callable among the arguments, with those behind it as its arguments.
std::optional<Outcomes> callFirst(Call &call, const Effect &effect) {
  if (call.argCount() > 1 && !memberNamedBy(call.row, call.arg(0)).empty())
    return callAsSaid(call, effect, call.arg(0), call.forwardedFrom(1));
  for (std::size_t i = 0; i < call.argCount(); ++i)
    if (isCallable(call, i))
      return callAsSaid(call, effect, call.arg(i), call.forwardedFrom(i + 1));
  return std::nullopt;
}

// Pools and parallel loops hand their callable arguments of their own (a range of indices).
std::optional<Outcomes> callLast(Call &call, const Effect &effect) {
  for (std::size_t i = call.argCount(); i-- > 0;)
    if (isCallable(call, i)) {
      std::vector<Argument> args = call.forwardedFrom(i + 1);
      const Function *callee = call.machine.program.function(call.arg(i)->function);
      while (callee && args.size() < callee->paramCount)
        args.push_back({unknownValue(), {}});
      return callAsSaid(call, effect, call.arg(i), args);
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
    if (callable->fields.count(hidden::callee))
      return runBound(call, std::move(row), callable, args);
    if (callable->fields.count(hidden::negated))
      return runNegated(call, std::move(row), callable, args);
    if (const Function *callee = machine.program.function(callable->function); callee && callee->hasBody)
      return runFunction(call, std::move(row), *callee, callable, args, where);
    if (!callable->type.empty())
      return runLibrary(call, std::move(row), callable->type, args);
  }
  if (is(callable, ValueKind::Record))
    if (const Function *callee = findMethod(machine, callable->type, callOperator)) {
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
  if (machine.types.takesStream(call.fact))
    machine.library.hooks.callUnseen(inRow);
  return inRow.done(machine.unknownResult(inRow));
}

namespace {

// The object is called.
std::optional<Outcomes> callObject(Call &call, const Effect &) {
  return callValue(call, call.row, call.object(), call.forwardedFrom(0), call.objectAddress());
}

// A thread starts with its callable.
std::optional<Outcomes> startThread(const Making &making, const Effect &) {
  const Value callable = making.arg(0);
  if (!is(callable, ValueKind::Function) && !is(callable, ValueKind::Record))
    return std::nullopt;
  Outcomes outcomes = callOnThread(making.call, callable, {making.args.begin() + 1, making.args.end()});
  for (Outcome &outcome : outcomes)
    outcome.result = unknownValue();
  return outcomes;
}

} // namespace

Words callableWords() {
  return {{{"bind", bind},
           {"negate", negate},
           {"visit", visit},
           {"call_first", callFirst},
           {"call_last", callLast},
           {"call_object", callObject}},
          {},
          {{"start_thread", startThread}}};
}

} // namespace devicetidy
