#include "analyzer/solve/Gradients.h"

#include "analyzer/solve/NameParts.h"
#include "analyzer/solve/OptimizerState.h"

namespace devicetidy {
namespace {

// What was moved since the last backward(): parameter -> what it was. There once a backward() has run.
RootId movedSince(Machine &machine) {
  static const Name id("moved since backward()");
  return machine.memory.global(id, {}, {});
}

// False when a gradient was left behind.
bool meetGradients(Call &call, const Value &optimizer) {
  Machine &machine = call.machine;
  const Value moved = call.row.store.get(movedSince(machine));
  if (!moved || moved->fields.empty())
    return true;
  for (const Value &parameter : optimizedBy(call, optimizer)) {
    const auto left = moved->fields.find(keyOfParameter(parameter->address));
    if (left == moved->fields.end())
      continue;
    Machine::Requirement requirement;
    requirement.operation = std::string(lastPart(call.fact.name.view()));
    machine.requireSame(call, {{parameter, nullptr, "a parameter"}, {left->second, nullptr, "its gradient"}},
                        requirement);
    return false;
  }
  return true;
}

Outcomes step(Call &call) {
  if (const Value optimizer = call.object();
      is(optimizer, ValueKind::Record) && meetGradients(call, optimizer))
    stepState(call, optimizer);
  return call.done(call.machine.unknownResult(call));
}

} // namespace

void noteBackward(Machine &machine, Row &row) { row.store.set(movedSince(machine), recordValue({})); }

void noteMoved(Machine &machine, Row &row, const Address &where, const Value &record,
               const Placement &placement) {
  Value moved = row.store.get(movedSince(machine));
  if (!moved || !placement.isKnown())
    return;
  for (const auto &[name, field] : record->fields) {
    const Name key = keyOfParameter(where.field(name));
    if (hidden::isParameter(name) && is(field, ValueKind::Tensor) && field->placement.isKnown() &&
        field->placement != placement && !moved->fields.count(key))
      moved = withField(moved, key, field);
  }
  row.store.set(movedSince(machine), moved);
}

std::optional<Outcomes> modelGradients(Call &call) {
  const std::string_view name = call.fact.name.view(), method = lastPart(name);
  const bool isOptimizer = startsWith(name, "torch::optim::");
  if (!call.fact.hasObject || (!isOptimizer && name != "torch::nn::Module::zero_grad"))
    return std::nullopt;
  if (method == "zero_grad") {
    call.row.store.erase(movedSince(call.machine));
    return call.done(call.machine.unknownResult(call));
  }
  // A closure runs backward() itself, within the step.
  const bool hasClosure = call.argCount() > 0 && !is(call.arg(0), ValueKind::Null);
  return method == "step" && !hasClosure ? std::optional(step(call)) : std::nullopt;
}

} // namespace devicetidy
