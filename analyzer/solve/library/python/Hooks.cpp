//===- Hooks.cpp - calls of modules, and the hooks around them ---===//
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Lists.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

const Name hooksField("@hooks"), hooksBeforeField("@hooks before"); ///< of a module: lists of what is called

std::vector<Value> hooksIn(const Call &call, const Row &row, const Address &module, Name field) {
  const Value known = call.machine.memory.read(row, module.field(field));
  return is(known, ValueKind::List) ? known->elements : std::vector<Value>();
}

bool hasHooks(const Call &call, const Row &row, const Value &module) {
  return is(module, ValueKind::Address) && (!hooksIn(call, row, module->address, hooksField).empty() ||
                                            !hooksIn(call, row, module->address, hooksBeforeField).empty());
}

struct Asked {
  Row row;
  Given given;
};

// What a hook before it returns is what the module gets.
Given replaced(const Given &given, const Value &result) {
  Given now = given;
  if (is(result, ValueKind::Null))
    return now;
  now.positional.clear();
  if (is(result, ValueKind::List) && !isSummary(result))
    for (const Value &each : result->elements)
      now.positional.push_back({each, {}});
  else if (is(result, ValueKind::Tensor))
    now.positional.push_back({result, {}});
  else
    now.positional.resize(given.positional.size(), Argument{unknownValue(), {}});
  return now;
}

// The inputs of a module as its hooks get them.
Value inputsOf(const Given &given) {
  std::vector<Value> inputs;
  for (const Argument &each : given.positional)
    inputs.push_back(each.value);
  return given.isOpen ? unknownValue() : tupleValue(std::move(inputs));
}

std::vector<Asked> runBefore(Call &call, Row row, const Value &module, const Given &given) {
  const std::vector<Value> hooks = hooksIn(call, row, module->address, hooksBeforeField);
  std::vector<Asked> asked{{std::move(row), given}};
  for (const Value &hook : hooks) {
    std::vector<Asked> next;
    for (Asked &before : asked) {
      Given with;
      with.positional = {{module, {}}, {inputsOf(before.given), {}}};
      for (Outcome &after : callValue(call, std::move(before.row), hook, with, {hook, {}})) {
        Given now = replaced(before.given, after.result);
        next.push_back({std::move(after.row), std::move(now)});
      }
    }
    asked = std::move(next);
  }
  return asked;
}

// What the hooks of a module make of its output.
Outcomes runAfter(Call &call, Outcomes outcomes, const Value &module, const Value &inputs) {
  if (outcomes.empty())
    return outcomes;
  for (const Value &hook : hooksIn(call, outcomes.front().row, module->address, hooksField)) {
    Outcomes next;
    for (Outcome &before : outcomes) {
      Given given;
      for (const Value &each : {module, inputs, before.result})
        given.positional.push_back({each, {}});
      for (Outcome &after : callValue(call, before.row, hook, given, {hook, {}})) {
        if (!is(after.result, ValueKind::Tensor) && !is(after.result, ValueKind::List))
          after.result = before.result;
        next.push_back(std::move(after));
      }
    }
    outcomes = std::move(next);
  }
  return outcomes;
}

// The layers of a Sequential, where one of them has hooks.
std::vector<Value> layersWithHooks(const Call &call, const Row &row, const Value &module) {
  const Value record = call.machine.memory.read(row, module->address);
  const auto children = record->fields.find(hidden::children);
  if (children == record->fields.end() || !is(children->second, ValueKind::List) ||
      isSummary(children->second) ||
      !call.machine.types.derivesFrom(record->type, "torch::nn::SequentialImpl"))
    return {};
  const std::vector<Value> &layers = children->second->elements;
  const bool haveHooks =
      std::any_of(layers.begin(), layers.end(), [&](const Value &each) { return hasHooks(call, row, each); });
  return haveHooks ? layers : std::vector<Value>();
}

Outcomes runLayers(Call &call, Row row, const std::vector<Value> &layers, const Argument &module,
                   const Given &given) {
  Outcomes outcomes = done(row, unknownValue());
  Given with = given;
  for (const Value &layer : layers) {
    Outcomes next;
    for (Outcome &before : outcomes) {
      if (&layer != &layers.front())
        with.positional = {{before.result, {}}};
      for (Outcome &after :
           callModule(call, std::move(before.row), {layer, {}, module.text, module.written}, with))
        next.push_back(std::move(after));
    }
    outcomes = std::move(next);
  }
  return outcomes;
}

} // namespace

Outcomes callModule(Call &call, Row row, const Argument &module, const Given &given) {
  const bool isPlain = !hasHooks(call, row, module.value);
  const std::vector<Value> layers = layersWithHooks(call, row, module.value);
  if (isPlain && layers.empty())
    return callMethod(call, std::move(row), module, "forward", given);
  Outcomes outcomes;
  for (Asked &each : runBefore(call, std::move(row), module.value, given)) {
    Outcomes run = layers.empty() ? callMethod(call, std::move(each.row), module, "forward", each.given)
                                  : runLayers(call, std::move(each.row), layers, module, each.given);
    for (Outcome &after : runAfter(call, std::move(run), module.value, inputsOf(each.given)))
      outcomes.push_back(std::move(after));
  }
  return outcomes;
}

Outcomes addHook(Call &call, Row row, const Address &module, bool isBefore, const Given &given) {
  const Name field = isBefore ? hooksBeforeField : hooksField;
  const Value hook = given.positional[0].value;
  std::vector<Value> hooks = hooksIn(call, row, module, field);
  hooks.push_back(hook);
  call.machine.memory.write(row, module.field(field), listValue("std::vector<at::Tensor>", std::move(hooks)));
  const Value handle = recordValue(
      hookType, {{"module", addressValue(module)}, {"field", scalarValue(textTerm(field))}, {"hook", hook}});
  const Value made = allocated(call, row, hookType, handle);
  return done(row, made);
}

void removeHook(Call &call, Row &row, const Value &handle) {
  const Address module = handle->fields.at("module")->address;
  const Name field(textOf(call, handle->fields.at("field")).value_or(""));
  std::vector<Value> hooks = hooksIn(call, row, module, field);
  const auto found = std::find_if(hooks.begin(), hooks.end(),
                                  [&](const Value &each) { return same(each, handle->fields.at("hook")); });
  if (found != hooks.end())
    hooks.erase(found);
  call.machine.memory.write(row, module.field(field), listValue("std::vector<at::Tensor>", std::move(hooks)));
}

} // namespace devicetidy::python
