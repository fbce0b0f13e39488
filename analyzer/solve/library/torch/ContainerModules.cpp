//===- ContainerModules.cpp - Sequential, ModuleList, ModuleDict, AnyModule, Functional ---===//
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/torch/Modules.h"

#include <algorithm>

namespace devicetidy {
namespace {

constexpr const char *functionField = "@function"; // Functional: what it calls
constexpr const char *boundField = "@bound";       // Functional: the arguments it adds

void setField(Call &call, const Address &object, Name field, const Value &value) {
  call.machine.memory.write(call.row, object.field(field), value);
}

} // namespace

void appendChild(Call &call, const Address &container, const Address &child, const std::string &name) {
  if (!child.valid() || !container.valid())
    return;
  Value children = call.machine.memory.read(call.row, container.field(hidden::children()));
  std::vector<Value> list = is(children, ValueKind::List) ? children->elements : std::vector<Value>();
  const bool anyRound = call.machine.roundOf(call.frame, call.row) != nullptr;
  if (anyRound || (is(children, ValueKind::List) && isSummary(children))) {
    std::vector<Value> alternatives = list;
    if (is(children, ValueKind::List))
      alternatives.insert(alternatives.end(), children->summary.begin(), children->summary.end());
    alternatives.push_back(anyRound ? generalise(addressValue(child)) : addressValue(child));
    setField(call, container, hidden::children(), summaryList({}, std::move(alternatives)));
  } else {
    const std::string key = name.empty() ? std::to_string(list.size()) : name;
    list.push_back(addressValue(child));
    setField(call, container, hidden::children(), listValue({}, std::move(list)));
    setField(call, container, hidden::submodule(key), addressValue(child));
    return;
  }
  setField(call, container, hidden::submodule(name + "#" + std::to_string(child.root)), addressValue(child));
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

void keepFunctional(std::map<Name, Value> &fields, const std::vector<Value> &args) {
  if (args.empty())
    return;
  fields[functionField] = args[0];
  fields[boundField] = listValue({}, {args.begin() + 1, args.end()});
}

Outcomes forwardFunctional(Call &call, const Value &record, std::vector<Argument> args) {
  auto function = record->fields.find(functionField);
  if (function == record->fields.end())
    return call.done(unknownValue());
  for (const Value &bound : record->fields.at(boundField)->elements)
    args.push_back({bound, {}});
  return callValue(call, call.row, function->second, args);
}

namespace {

// Runs the layers in `children` one after the other on `args`.
Outcomes runLayers(Call &call, const std::vector<Value> &children, std::vector<Argument> args) {
  Outcomes current = call.done(args.empty() ? unknownValue() : args[0].value);
  bool first = true;
  for (const Value &child : children) {
    Outcomes next;
    for (Outcome &outcome : current) {
      Call step{call.machine, call.frame, outcome.row, call.fact, call.first};
      const std::vector<Argument> input = first ? args : std::vector<Argument>{{outcome.result, {}}};
      for (Outcome &after : forwardModule(step, child->address, input, "a layer of the Sequential", nullptr))
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

// Layers that were added in a loop are run once, for any round.
Outcomes forwardSequential(Call &call, const Address &module, std::vector<Argument> args) {
  Value children = call.machine.memory.read(call.row, module.field(hidden::children()));
  if (!is(children, ValueKind::List))
    return call.done(unknownValue());
  if (!isSummary(children))
    return runLayers(call, children->elements, std::move(args));
  const Term any =
      applyTerm("loop", {symbolTerm(Name("layer at line " + std::to_string(call.fact.where.line)))});
  std::vector<Value> layers;
  for (const Value &layer : children->summary)
    layers.push_back(substitute(layer, elementIndex(), any));
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
  return call.machine.memory.read(call.row, container.field(hidden::children()).element(term));
}

} // namespace

namespace {

// The modules of another container, in their order, with the names they have there unless those are numbers.
void appendModulesOf(Call &call, const Address &self, const Address &other) {
  const Value record = call.machine.memory.read(call.row, other);
  const Value modules = call.machine.memory.read(call.row, other.field(hidden::children()));
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

} // namespace

std::optional<Outcomes> modelContainerModule(Call &call, const Address &self, std::string_view method) {
  if (method == "push_back" || method == "append" || method == "insert") {
    const std::size_t last = call.argCount() - 1;
    std::string name = call.argCount() > 1 ? stringArgument(call, 0) : std::string();
    appendChild(call, self, childModule(call, call.forwarded(last)), name);
    return call.done(unknownValue());
  }
  if (isOneOf(method, {"extend", "update"}) && call.argCount() == 1) {
    const Argument added = call.forwarded(0);
    if (Address other = moduleOf(call, added.value, added.address); other.valid())
      appendModulesOf(call, self, other);
    else
      appendChildren(call, self, added);
    return call.done(unknownValue());
  }
  Value children = call.machine.memory.read(call.row, self.field(hidden::children()));
  if (method == "operator[]" || method == "ptr" || method == "at") {
    const Value index = call.argCount() ? call.arg(0) : unknownValue();
    const Value element = childAt(call, self, children, index);
    if (!is(element, ValueKind::Address))
      return call.done(unknownValue());
    if (method == "at" || !call.fact.resultIsAddress)
      return call.done(element);
    Address temporary = call.machine.allocate(call.row, call.frame, call.fact, call.resultType());
    call.machine.memory.write(call.row, temporary, element);
    return call.done(addressValue(temporary));
  }
  if (method == "is_empty" || method == "empty") {
    const Value record = call.machine.memory.read(call.row, self);
    const bool isMadeHere = is(record, ValueKind::Record) && !record->origin;
    if (is(children, ValueKind::List)) // filled in a loop, which is meant to run
      return call.done(scalarValue(intTerm(!isSummary(children) && children->elements.empty())));
    if (isMadeHere && !record->fields.count(hidden::children()))
      return call.done(scalarValue(intTerm(1)));
    return call.done(call.machine.unknownResult(call));
  }
  if (method == "size" && is(children, ValueKind::List) && !isSummary(children))
    return call.done(scalarValue(intTerm(static_cast<std::int64_t>(children->elements.size()))));
  if (method == "children" || method == "modules")
    return call.done(is(children, ValueKind::List) ? children : unknownValue());
  return std::nullopt;
}

std::optional<Outcomes> modelParameterContainer(Call &call, const Address &self, std::string_view method) {
  const Value container = call.machine.memory.read(call.row, self);
  const std::string kind =
      is(container, ValueKind::Record) ? call.machine.types.builtinModule(container->type) : std::string();
  if (kind != "ParameterList" && kind != "ParameterDict")
    return std::nullopt;
  auto cellOf = [&](const Value &key) -> std::optional<Name> {
    const Term term = is(key, ValueKind::Scalar) ? call.row.resolve(key->term) : nullptr;
    if (std::optional<Name> text = term ? textOf(term) : std::nullopt)
      return Name(hidden::parameter(*text));
    if (auto number = term ? constantOf(term) : std::nullopt)
      return Name(hidden::parameter(Name(std::to_string(*number))));
    return std::nullopt;
  };
  if (isOneOf(method, {"insert", "append"}) && call.argCount()) {
    const auto held = std::count_if(container->fields.begin(), container->fields.end(),
                                    [](const auto &field) { return hidden::isParameter(field.first); });
    const std::optional<Name> cell =
        method == "insert" ? cellOf(call.arg(0)) : cellOf(scalarValue(intTerm(std::int64_t(held))));
    const Value tensor = call.arg(call.argCount() - 1);
    if (cell && is(tensor, ValueKind::Tensor))
      setField(call, self, *cell, tensor);
    return call.done(tensor);
  }
  if (!isOneOf(method, {"operator[]", "get", "at"}) || !call.argCount())
    return std::nullopt;
  const std::optional<Name> cell = cellOf(call.arg(0));
  if (!cell || !container->fields.count(*cell))
    return call.done(unknownValue());
  const Value handle = parameterHandle(self.field(*cell));
  if (!call.fact.resultIsAddress)
    return call.done(handle);
  const Address temporary = call.machine.allocate(call.row, call.frame, call.fact, "at::Tensor");
  call.machine.memory.write(call.row, temporary, handle);
  return call.done(addressValue(temporary));
}

std::optional<Outcomes> modelAnyModule(Call &call, std::string_view method) {
  Value held = call.object();
  if (method == "forward" || method == "any_forward") {
    if (!is(held, ValueKind::Address))
      return call.done(unknownValue());
    return forwardModule(call, held->address, call.forwardedFrom(0), call.fact.operands[0].text.str(),
                         held->history);
  }
  if (method == "get" || method == "ptr")
    return call.done(held);
  if (method == "is_empty")
    return call.done(scalarValue(intTerm(is(held, ValueKind::Null))));
  return std::nullopt;
}

} // namespace devicetidy
