//===- AutogradFunctions.cpp - torch::autograd::Function --------------------===//
//
// apply() runs the program's forward() with a context, and its backward() for what it may find there.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

const Name savedDataField("saved_data");

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
std::optional<Outcomes> applyFunction(Call &call, const Effect &) {
  Machine &machine = call.machine;
  for (Name type : call.fact.templateTypes)
    if (const Function *forward = findMethod(machine, type, "forward")) {
      Row row = call.row;
      const Address context =
          machine.allocate(row, call.frame, call.fact, "torch::autograd::AutogradContext");
      machine.memory.write(row, context.field(savedDataField), recordValue("ska::flat_hash_map"));
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

std::optional<Outcomes> saveVariables(Call &call, const Effect &) {
  call.machine.memory.write(call.row, call.objectAddress().field(hidden::saved), call.arg(0));
  return call.done(unknownValue());
}

std::optional<Outcomes> savedVariables(Call &call, const Effect &) {
  return call.done(call.machine.memory.read(call.row, call.objectAddress().field(hidden::saved)));
}

} // namespace

Words autogradFunctionWords() {
  return {{{"apply_function", applyFunction},
           {"save_variables", saveVariables},
           {"saved_variables", savedVariables}},
          {},
          {}};
}

} // namespace devicetidy
