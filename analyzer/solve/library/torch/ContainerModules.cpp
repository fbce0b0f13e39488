//===- ContainerModules.cpp - Sequential, ModuleList, ModuleDict, AnyModule, Functional ---===//
#include "analyzer/solve/domain/Ends.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/torch/Modules.h"
#include "analyzer/solve/library/torch/Words.h"

#include <algorithm>

namespace devicetidy {
namespace {

using models::Effect;

void setField(Call &call, const Address &object, Name field, const Value &value) {
  call.machine.memory.write(call.row, object.field(field), value);
}

} // namespace

void appendChild(Call &call, const Address &container, const Address &child, const std::string &name,
                 bool isOneOfSome) {
  if (!child.valid() || !container.valid())
    return;
  const Value children = call.machine.memory.read(call.row, container.field(hidden::children));
  const bool isList = is(children, ValueKind::List);
  const Value added = addressValue(child);
  noteRegistered(call, container, name, child);
  auto enter = [&](const Value &list, const std::string &key) {
    setField(call, container, hidden::children, list);
    setField(call, container, hidden::submodule(key), added);
  };
  const std::string numbered = name + "#" + std::to_string(child.root);
  if (isOneOfSome || call.machine.iterationOf(call.frame, call.row))
    return enter(withSomeLast(children, generalise(added), bounds::modulesOfContainer), numbered);
  if (isList && isSummary(children))
    return enter(withLast(children, {}, added, bounds::modulesOfContainer), numbered);
  std::vector<Value> list = isList ? children->elements : std::vector<Value>();
  const std::string key = name.empty() ? std::to_string(list.size()) : name;
  list.push_back(added);
  enter(listValue({}, std::move(list)), key);
}

Address childModule(Call &call, const Argument &arg) {
  Address where = moduleOf(call, arg.value, arg.address);
  if (is(arg.value, ValueKind::Record) && call.machine.types.isModule(arg.value->type)) {
    Address copy = call.machine.allocate(call.row, call.frame, call.fact, arg.value->type);
    call.machine.memory.write(call.row, copy, arg.value);
    return copy;
  }
  return where;
}

namespace {

// `arg` is a module, or a list or dictionary of them.
void appendChildren(Call &call, const Address &container, const Argument &arg) {
  auto append = [&](const Value &entry) {
    std::string name;
    if (is(entry, ValueKind::Record))
      if (auto key = entry->fields.find("first"); key != entry->fields.end())
        if (std::optional<Name> text =
                is(key->second, ValueKind::Scalar) ? textOf(key->second->term) : std::nullopt)
          name = text->str();
    appendChild(call, container, childModule(call, {entry, {}}), name);
  };
  const bool isMap =
      is(arg.value, ValueKind::Record) && call.machine.types.classOf(arg.value->type) == TypeClass::Map;
  if (is(arg.value, ValueKind::List)) // filled in a loop: one of each kind stands for all
    for (const auto *known : {&arg.value->elements, &arg.value->summary})
      std::for_each(known->begin(), known->end(), append);
  else if (isMap)
    for (const auto &[key, entry] : arg.value->fields)
      append(entry);
  else
    appendChild(call, container, childModule(call, arg), {});
}

} // namespace

Value withModules(const Making &making, const Value &container) {
  Call &call = making.call;
  const Memory &memory = call.machine.memory;
  if (!making.where.valid())
    return container;
  const Value before = memory.read(call.row, making.where);
  memory.write(call.row, making.where, container);
  for (const Argument &arg : making.args)
    appendChildren(call, making.where, arg);
  const Value made = memory.read(call.row, making.where);
  memory.write(call.row, making.where, before);
  return made;
}

void keepFunctional(std::map<Name, Value> &fields, const std::vector<Argument> &args) {
  if (args.empty())
    return;
  std::vector<Value> bound;
  for (std::size_t i = 1; i < args.size(); ++i)
    bound.push_back(args[i].value);
  fields[hidden::function] = args[0].value;
  fields[hidden::bound] = listValue({}, std::move(bound));
}

Outcomes forwardFunctional(Call &call, const Value &record, std::vector<Argument> args) {
  auto function = record->fields.find(hidden::function);
  if (function == record->fields.end())
    return call.done(unknownValue());
  for (const Value &bound : record->fields.at(hidden::bound)->elements)
    args.push_back({bound, {}});
  return callValue(call, call.row, function->second, args);
}

namespace {

// Runs the layers in `children` one after the other on `args`.
Outcomes runLayers(Call &call, const std::vector<Value> &children, std::vector<Argument> args) {
  Outcomes current = call.done(args.empty() ? unknownValue() : args[0].value);
  const std::string layer = "a layer of " + quotedObject(call);
  bool first = true;
  for (const Value &child : children) {
    Outcomes next;
    for (Outcome &outcome : current) {
      Call step{call.machine, call.frame, outcome.row, call.fact, call.first};
      const std::vector<Argument> input = first ? args : std::vector<Argument>{{outcome.result, {}}};
      for (Outcome &after : forwardModule(step, child->address, input, layer, nullptr))
        next.push_back(std::move(after));
    }
    first = false;
    if (!isWithin(next.size(), bounds::rowsPerOutcome, Bound::RowsOfSequential))
      next.resize(bounds::rowsPerOutcome);
    current = std::move(next);
  }
  return current;
}

} // namespace

// Layers that were added in a loop are run once, for any iteration.
Outcomes forwardSequential(Call &call, const Address &module, std::vector<Argument> args) {
  Value children = call.machine.memory.read(call.row, module.field(hidden::children));
  if (!is(children, ValueKind::List))
    return call.done(unknownValue());
  const Term any =
      applyTerm(op::loop, {symbolTerm(Name("layer at line " + std::to_string(call.fact.where.line)))});
  ListParts parts = partsOf(children);
  std::vector<Value> layers = std::move(parts.begin);
  for (const Value &layer : parts.between)
    layers.push_back(substitute(layer, elementIndex(), any));
  layers.insert(layers.end(), parts.end.begin(), parts.end.end());
  return runLayers(call, layers, std::move(args));
}

namespace {

// The module at a number, or under a name.
Value childAt(Call &call, const Address &container, const Value &children, const Value &index) {
  if (!is(index, ValueKind::Scalar))
    return unknownValue();
  const Term term = call.row.resolve(index->term);
  if (std::optional<Name> name = textOf(term))
    return call.machine.memory.read(call.row, container.field(hidden::submodule(*name)));
  if (!is(children, ValueKind::List))
    return unknownValue();
  return call.machine.memory.read(call.row, container.field(hidden::children).element(term));
}

} // namespace

namespace {

// The modules of another container, in their order, with the names they have there unless those are numbers.
void appendModulesOf(Call &call, const Address &self, const Address &other) {
  const Value record = call.machine.memory.read(call.row, other);
  const Value modules = call.machine.memory.read(call.row, other.field(hidden::children));
  if (!is(modules, ValueKind::List) || !is(record, ValueKind::Record))
    return;
  std::map<Address, std::string> names;
  for (const auto &[field, module] : record->fields)
    if (hidden::isSubmodule(field) && is(module, ValueKind::Address)) {
      const std::string name = field.str().substr(hidden::submodule({}).size());
      if (name.find_first_not_of("0123456789") != std::string::npos)
        names[module->address] = name;
    }
  for (const auto *known : {&modules->elements, &modules->summary})
    for (const Value &module : *known)
      appendChild(call, self, module->address,
                  names.count(module->address) ? names.at(module->address) : std::string());
}

// The module is the last argument, a name may stand before it.
std::optional<Outcomes> addModule(Call &call, const Effect &) {
  const std::string name = call.argCount() > 1 ? stringArgument(call, 0) : std::string();
  appendChild(call, call.objectAddress(), childModule(call, call.forwarded(call.argCount() - 1)), name);
  return call.done(unknownValue());
}

// All modules of another container or of a list.
std::optional<Outcomes> addModules(Call &call, const Effect &) {
  const Argument added = call.forwarded(0);
  if (const Address other = moduleOf(call, added.value, added.address); other.valid())
    appendModulesOf(call, call.objectAddress(), other);
  else
    appendChildren(call, call.objectAddress(), added);
  return call.done(unknownValue());
}

Value childrenOf(const Call &call) {
  return call.machine.memory.read(call.row, call.objectAddress().field(hidden::children));
}

Outcomes moduleIn(Call &call, const Address &container) {
  const Value children = call.machine.memory.read(call.row, container.field(hidden::children));
  const Value element = childAt(call, container, children, call.argCount() ? call.arg(0) : unknownValue());
  return call.done(is(element, ValueKind::Address) ? element : unknownValue());
}

std::optional<Outcomes> moduleAt(Call &call, const Effect &) { return moduleIn(call, call.objectAddress()); }

std::optional<Outcomes> hasNoModules(Call &call, const Effect &) {
  const Value children = childrenOf(call), record = call.object();
  const bool isMadeHere = is(record, ValueKind::Record) && !record->origin;
  if (is(children, ValueKind::List)) // filled in a loop, which is meant to run
    return call.done(scalarValue(intTerm(!isSummary(children) && children->elements.empty())));
  if (isMadeHere && !record->fields.count(hidden::children))
    return call.done(scalarValue(intTerm(1)));
  return call.done(call.machine.unknownResult(call));
}

std::optional<Outcomes> numberOfModules(Call &call, const Effect &) {
  const Value children = childrenOf(call);
  if (!is(children, ValueKind::List) || isSummary(children))
    return std::nullopt;
  return call.done(scalarValue(intTerm(static_cast<std::int64_t>(children->elements.size()))));
}

// The cell of a ParameterList or ParameterDict for a key, which is a number or a name.
std::optional<Name> cellOf(const Call &call, const Value &key) {
  const Term term = is(key, ValueKind::Scalar) ? call.row.resolve(key->term) : nullptr;
  if (const std::optional<Name> text = term ? textOf(term) : std::nullopt)
    return Name(hidden::parameter(*text));
  if (const auto number = term ? constantOf(term) : std::nullopt)
    return Name(hidden::parameter(Name(std::to_string(*number))));
  return std::nullopt;
}

// ParameterList::append(tensor) and ParameterDict::insert(key, tensor): what they get is registered.
std::optional<Outcomes> addParameter(Call &call, const Effect &) {
  const Value container = call.object();
  const auto held = std::count_if(container->fields.begin(), container->fields.end(),
                                  [](const auto &field) { return hidden::isParameter(field.first); });
  const std::optional<Name> cell =
      cellOf(call, call.argCount() > 1 ? call.arg(0) : scalarValue(intTerm(std::int64_t(held))));
  const Value tensor = call.arg(call.argCount() - 1);
  if (cell && is(container, ValueKind::Record) && is(tensor, ValueKind::Tensor))
    setField(call, call.objectAddress(), *cell, tensor);
  return call.done(tensor);
}

Outcomes parameterIn(Call &call, const Address &container, const Value &record) {
  const std::optional<Name> cell = cellOf(call, call.arg(0));
  if (!cell || !record->fields.count(*cell))
    return call.done(unknownValue());
  const Value handle = parameterHandle(container.field(*cell));
  if (!call.fact.resultIsAddress)
    return call.done(handle);
  const Address temporary = call.machine.allocate(call.row, call.frame, call.fact, "at::Tensor");
  call.machine.memory.write(call.row, temporary, handle);
  return call.done(addressValue(temporary));
}

std::optional<Outcomes> parameterAt(Call &call, const Effect &) {
  return parameterIn(call, call.objectAddress(), call.object());
}

// holder[key]: of what the holder holds.
std::optional<Outcomes> heldElement(Call &call, const Effect &) {
  const Value held = call.object();
  if (!is(held, ValueKind::Address))
    return std::nullopt;
  const Value container = call.machine.memory.read(call.row, held->address);
  const models::Module *model =
      is(container, ValueKind::Record) ? call.machine.types.builtinModule(container->type) : nullptr;
  return model && model->forward.rule == models::Rule::Parameters
             ? parameterIn(call, held->address, container)
             : moduleIn(call, held->address);
}

} // namespace

Words containerModuleWords() {
  return {{{"add_module", addModule},
           {"add_modules", addModules},
           {"module_at", moduleAt},
           {"has_no_modules", hasNoModules},
           {"number_of_modules", numberOfModules},
           {"add_parameter", addParameter},
           {"parameter_at", parameterAt},
           {"held_element", heldElement}},
          {},
          {}};
}

} // namespace devicetidy
