#include "analyzer/solve/library/torch/Gradients.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/torch/OptimizerState.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

// What was moved since the last backward(): parameter -> what it was. There once a backward() has run.
RootId movedSince(Machine &machine) {
  static const Name id("moved since backward()");
  return machine.memory.global(id, {}, {});
}

// Where the gradients are that a step() has used: parameter -> what it was then.
RootId gradients(Machine &machine) {
  static const Name id("gradients");
  return machine.memory.global(id, {}, {});
}

// Parameters that were used where their gradients are not: parameter -> what it is now.
RootId usedElsewhere(Machine &machine) {
  static const Name id("used where its gradient is not");
  return machine.memory.global(id, {}, {});
}

bool isSet(const Value &record) { return record && is(record, ValueKind::Record) && !record->fields.empty(); }

// step() has used the gradients of what it optimises.
void noteGradients(Call &call, const Value &optimizer) {
  const RootId root = gradients(call.machine);
  const Value known = call.row.store.get(root);
  Value now = isSet(known) ? known : recordValue({});
  for (const Value &parameter : optimizedBy(call, optimizer))
    if (const Value kept = call.machine.memory.snapshot(call.row, parameter); kept->placement.isKnown())
      now = withField(now, keyOfParameter(parameter->address), kept);
  if (isSet(now))
    call.row.store.set(root, now);
}

// False when a gradient was left behind.
bool meetGradients(Call &call, const Value &optimizer) {
  Machine &machine = call.machine;
  const Value moved = call.row.store.get(movedSince(machine));
  if (!isSet(moved))
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

// One gradient for each input, where that is (torch/csrc/autograd/autograd.cpp, grad).
std::optional<Outcomes> gradientsOf(Call &call, const Effect &) {
  const Value inputs = call.argCount() > 1 ? call.arg(1) : unknownValue();
  if (!is(inputs, ValueKind::List))
    return call.done(call.machine.unknownResult(call));
  ValueData gradients = *inputs;
  gradients.type = call.resultType();
  for (std::vector<Value> *part : {&gradients.elements, &gradients.summary})
    for (Value &each : *part)
      each = is(each, ValueKind::Tensor) ? call.machine.memory.snapshot(call.row, each) : unknownValue();
  return call.done(makeValue(std::move(gradients)));
}

// A closure runs backward() itself, within the step.
std::optional<Outcomes> step(Call &call, const Effect &) {
  if (call.argCount() > 0 && !is(call.arg(0), ValueKind::Null))
    return callValue(call, call.row, call.arg(0), {});
  const Value optimizer = call.object();
  if (is(optimizer, ValueKind::Record) && meetGradients(call, optimizer)) {
    stepState(call, call.objectAddress(), optimizer);
    noteGradients(call, optimizer);
  }
  return call.done(call.machine.unknownResult(call));
}

// backward() runs: gradients are where their parameters are.
std::optional<Outcomes> meetBackward(Call &call, const Effect &) {
  Machine &machine = call.machine;
  const Value known = call.row.store.get(gradients(machine)),
              used = call.row.store.get(usedElsewhere(machine));
  if (isSet(known) && isSet(used)) {
    const auto &[key, parameter] = *used->fields.begin();
    Machine::Requirement requirement;
    requirement.operation = "backward";
    if (const auto gradient = known->fields.find(key); gradient != known->fields.end())
      machine.requireSame(call,
                          {{parameter, nullptr, "the new gradient of a parameter"},
                           {gradient->second, nullptr, "the gradient it has"}},
                          requirement);
  }
  call.row.store.erase(usedElsewhere(machine));
  call.row.store.set(movedSince(machine), recordValue({}));
  return call.done(unknownValue());
}

// What is set by hand, or dropped, may be anywhere.
std::optional<Outcomes> forgetGradients(Call &call, const Effect &) {
  for (const RootId root : {movedSince(call.machine), gradients(call.machine), usedElsewhere(call.machine)})
    call.row.store.erase(root);
  return call.done(call.machine.unknownResult(call));
}

// Gradients of zeros stay where they are.
std::optional<Outcomes> zeroGradients(Call &call, const Effect &effect) {
  const auto drops = call.argCount() > 0 ? call.row.numberOf(call.arg(0)) : std::nullopt;
  if (drops.value_or(call.machine.version.major >= 2) != 0)
    return forgetGradients(call, effect);
  return call.done(call.machine.unknownResult(call));
}

} // namespace

void noteUsed(Machine &machine, Row &row, const std::vector<TensorUse> &uses) {
  const Value known = row.store.get(gradients(machine));
  if (!isSet(known))
    return;
  for (const TensorUse &use : uses) {
    if (!is(use.tensor, ValueKind::Tensor) || !use.tensor->address.valid())
      continue;
    const auto gradient = known->fields.find(keyOfParameter(use.tensor->address));
    if (gradient == known->fields.end())
      continue;
    const Value before = row.store.get(usedElsewhere(machine)),
                now = machine.memory.snapshot(row, use.tensor);
    ValueData used = before && is(before, ValueKind::Record) ? *before : *recordValue({});
    if (now->placement.isKnown() && now->placement != gradient->second->placement)
      used.fields[gradient->first] = now;
    else if (used.fields.erase(gradient->first) == 0)
      continue;
    row.store.set(usedElsewhere(machine), makeValue(std::move(used)));
  }
}

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

Words gradientWords() {
  return {{{"gradients_of", gradientsOf},
           {"step", step},
           {"meet_backward", meetBackward},
           {"forget_gradients", forgetGradients},
           {"zero_gradients", zeroGradients}},
          {},
          {}};
}

} // namespace devicetidy
