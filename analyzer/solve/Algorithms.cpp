//===- Algorithms.cpp - library functions that run the program's own code ---===//
#include "analyzer/solve/Devices.h"
#include "analyzer/solve/Registers.h"
#include "analyzer/solve/NameParts.h"

#include <algorithm>

namespace devicetidy {
namespace {

// Runs `callable` once on an element of the container `where` (its index is a symbol of this call).
Outcomes onElement(Call &call, const Value &callable, const Address &where, std::vector<Value> before) {
  Machine &machine = call.machine;
  const Function *callee =
      is(callable, ValueKind::Function) ? machine.program.function(callable->function) : nullptr;
  if (!callee)
    return call.done(unknownValue());
  Value list = machine.memory.read(call.row, where);
  if (is(list, ValueKind::List) && !isSummary(list) && list->elements.size() <= bounds::forksPerRead) {
    // A few known elements: run on each in turn.
    Outcomes current = call.done(unknownValue());
    for (std::size_t i = 0; i < list->elements.size(); ++i) {
      Outcomes next;
      for (Outcome &outcome : current) {
        const Address element = where.element(intTerm(static_cast<std::int64_t>(i)));
        std::vector<Value> args = before;
        const std::size_t position = args.size();
        const bool byReference = position < callee->paramCount && callee->locals[position].isReference;
        args.push_back(byReference ? addressValue(element) : machine.memory.read(outcome.row, element));
        for (Outcome &after : machine.invokeCallable(call.frame, call.fact, outcome.row, callable, args))
          next.push_back(std::move(after));
      }
      if (next.size() > bounds::rowsPerOutcome)
        next.resize(bounds::rowsPerOutcome);
      current = std::move(next);
    }
    return current;
  }
  const Address element = where.element(
      applyTerm("loop", {symbolTerm(Name("algorithm at " + std::to_string(call.fact.where.line)))}));
  std::vector<Value> args = std::move(before);
  const std::size_t position = args.size();
  const bool byReference = position < callee->paramCount && callee->locals[position].isReference;
  args.push_back(byReference ? addressValue(element) : machine.memory.read(call.row, element));
  return machine.invokeCallable(call.frame, call.fact, call.row, callable, std::move(args));
}

// The callable among the arguments, and its position.
std::optional<std::size_t> callableArgument(const Call &call) {
  for (std::size_t i = call.argCount(); i-- > 0;)
    if (is(call.arg(i), ValueKind::Function))
      return i;
  return std::nullopt;
}

const Name savedField("@saved");

// Runs backward() of an autograd::Function for its findings: gradients are where the outputs are.
void runBackward(Call &call, Name type, const Row &after, const Address &context, const Value &output) {
  Machine &machine = call.machine;
  const Function *backward = findMethod(machine, type, "backward");
  std::vector<Value> outputs;
  machine.collectTensors(after, output, outputs);
  if (!backward || outputs.empty())
    return;
  Row row = after;
  Call inRow{machine, call.frame, row, call.fact, call.first};
  std::vector<Value> gradients;
  for (const Value &tensor : outputs)
    gradients.push_back(tensorValue(machine.memory.placementOf(row, tensor), tensor->rank,
                                    machine.memory.historyOf(row, tensor)));
  std::vector<Argument> args{{addressValue(context), context},
                             {listValue("std::vector", std::move(gradients)), {}}};
  invokeForwarded(inRow, row, *backward, {}, args);
}

// autograd::Function<T>::apply(args...) runs T::forward(ctx, args...).
Outcomes applyFunction(Call &call) {
  Machine &machine = call.machine;
  for (Name type : call.fact.templateTypes)
    if (const Function *forward = findMethod(machine, type, "forward")) {
      Row row = call.row;
      const Address context =
          machine.allocate(row, call.frame, call.fact, "torch::autograd::AutogradContext");
      std::vector<Argument> args{{addressValue(context), context}};
      for (std::size_t i = 0; i < call.argCount(); ++i)
        args.push_back(call.forwarded(i));
      const std::size_t conflicts = machine.solution.conflicts.size();
      Outcomes outcomes = invokeForwarded(call, std::move(row), *forward, {}, args);
      // What fails forward never comes to its backward.
      if (machine.solution.conflicts.size() == conflicts)
        for (const Outcome &outcome : outcomes)
          runBackward(call, type, outcome.row, context, outcome.result);
      return outcomes;
    }
  return call.done(unknownValue());
}

std::optional<Outcomes> modelContext(Call &call, std::string_view method) {
  const Address context = call.objectAddress();
  if (method == "save_for_backward") {
    call.machine.memory.write(call.row, context.field(savedField), call.arg(0));
    return call.done(unknownValue());
  }
  if (method == "get_saved_variables")
    return call.done(call.machine.memory.read(call.row, context.field(savedField)));
  return std::nullopt;
}

} // namespace

std::optional<Outcomes> modelAlgorithms(Call &call) {
  std::string_view name = call.fact.name.view();
  if (name == "torch::autograd::Function::apply")
    return applyFunction(call);
  if (startsWith(name, "torch::autograd::AutogradContext::") && call.fact.hasObject)
    return modelContext(call, lastPart(name));
  std::optional<std::size_t> position = callableArgument(call);
  if (!position)
    return std::nullopt;
  Value callable = call.arg(*position);
  if (isOneOf(name, {"std::for_each", "std::for_each_n", "std::all_of", "std::any_of", "std::none_of",
                     "std::find_if"}) &&
      call.addressOf(0).valid())
    return onElement(
        call, callable,
        call.operand(0)->kind == ValueKind::Address ? call.operand(0)->address : call.addressOf(0), {});
  if (name == "std::transform") {
    Value from = registerOf(call.row, call.fact.operands[0].reg);
    Value to = registerOf(call.row, call.fact.operands[2].reg);
    if (call.fact.operands[0].isAddress && is(from, ValueKind::Address))
      from = call.machine.memory.read(call.row, from->address);
    if (!is(from, ValueKind::Address))
      return call.done(unknownValue());
    Outcomes outcomes = onElement(call, callable, from->address, {});
    if (is(to, ValueKind::Address))
      for (Outcome &outcome : outcomes) {
        Value target = call.machine.memory.read(outcome.row, to->address);
        if (is(target, ValueKind::Address)) {
          to = target;
          target = call.machine.memory.read(outcome.row, target->address);
        }
        if (is(target, ValueKind::List))
          call.machine.memory.write(outcome.row, to->address, summaryList(target->type, {outcome.result}));
      }
    return outcomes;
  }
  if (name == "std::accumulate" && call.argCount() >= 4) {
    Value from = registerOf(call.row, call.fact.operands[0].reg);
    if (is(from, ValueKind::Address))
      return onElement(call, callable, from->address, {call.arg(2)});
    return call.done(unknownValue());
  }
  const bool runsIt = isOneOf(name, {"at::parallel_for", "std::async", "std::invoke", "std::call_once"}) ||
                      startsWith(name, "std::thread") || lastPart(name) == "submit" ||
                      lastPart(name) == "step";
  if (runsIt) {
    const Function *callee = call.machine.program.function(callable->function);
    std::vector<Value> args;
    for (std::size_t i = *position + 1; i < call.argCount(); ++i)
      args.push_back(registerOf(call.row, call.fact.operands[call.first + i].reg));
    while (callee && args.size() < callee->paramCount)
      args.push_back(unknownValue());
    return call.machine.invokeCallable(call.frame, call.fact, call.row, callable, std::move(args));
  }
  return std::nullopt;
}

} // namespace devicetidy
