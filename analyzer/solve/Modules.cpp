//===- Modules.cpp - torch::nn modules, holders, registration ---------===//
//
// A module is a record on the heap. What it registered is in hidden fields: parameters of its own, and the
// addresses of its submodules; Module::to moves those and nothing else.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/Devices.h"
#include "analyzer/solve/Registers.h"
#include "analyzer/solve/Tensors.h"
#include "analyzer/solve/NameParts.h"

#include <algorithm>

namespace devicetidy {
namespace {

using models::Op;
using models::Rule;

// The address a holder, smart pointer or AnyModule value stands for.
Address moduleOf(const Call &call, const Value &value, const Address &where) {
  if (is(value, ValueKind::Address))
    return value->address;
  if (is(value, ValueKind::Record) && call.machine.types.isModule(value->type))
    return where;
  if (is(value, ValueKind::Record)) {
    // NamedAnyModule, pair<string, module>: the module is in there.
    for (const auto &[name, field] : value->fields)
      if (is(field, ValueKind::Address))
        return field->address;
  }
  return {};
}

std::string stringArgument(const Call &call, std::size_t i) {
  Value value = call.arg(i);
  if (is(value, ValueKind::Scalar))
    if (std::optional<Name> text = textOf(call.row.resolve(value->term)))
      return text->str();
  // A name made at run time: the place of the call stands for it.
  return "at line " + std::to_string(call.fact.where.line);
}

void setField(Call &call, const Address &object, Name field, const Value &value) {
  call.machine.memory.write(call.row, object.field(field), value);
}

// The variable or member whose value operand `i` is a copy of; invalid for a temporary.
Address copiedFrom(const Call &call, std::size_t i) {
  if (i >= call.fact.operands.size())
    return {};
  if (call.fact.operands[i].isAddress)
    return call.addressOf(i);
  const Fact *load = nullptr;
  for (const Fact &fact : call.frame.function.blocks[static_cast<std::size_t>(call.frame.block)].facts) {
    if (&fact == &call.fact)
      break;
    if (fact.kind == FactKind::EndStatement)
      load = nullptr;
    else if (fact.kind == FactKind::Load && fact.result == call.fact.operands[i].reg)
      load = &fact;
  }
  if (!load)
    return {};
  Value source = registerOf(call.row, load->operands[0].reg);
  return is(source, ValueKind::Address) ? source->address : Address();
}

// register_parameter/register_buffer: the module holds the tensor; what is returned is a handle on it.
Outcomes registerTensor(Call &call) {
  Machine &machine = call.machine;
  const Address self = call.objectAddress();
  Value tensor = call.arg(1);
  const Name cell = hidden::parameter(stringArgument(call, 0));
  Value held = is(tensor, ValueKind::Tensor)
                   ? tensorValue(machine.memory.placementOf(call.row, tensor), tensor->rank,
                                 machine.memory.historyOf(call.row, tensor))
                   : tensor;
  if (!self.valid() || !is(held, ValueKind::Tensor))
    return call.done(call.fact.resultIsAddress ? unknownValue() : tensor);
  setField(call, self, cell, held);
  Value handle = parameterHandle(self.field(cell), held->rank);
  // The argument is the same tensor: it moves with the module too.
  if (Address argument = copiedFrom(call, call.first + 1); argument.valid())
    machine.memory.write(call.row, argument, handle);
  if (!call.fact.resultIsAddress)
    return call.done(handle);
  Address temporary = machine.allocate(call.row, call.frame, call.fact, "at::Tensor");
  machine.memory.write(call.row, temporary, handle);
  return call.done(addressValue(temporary));
}

Outcomes registerModule(Call &call) {
  const Address self = call.objectAddress();
  Value module = call.arg(1);
  const Address where = moduleOf(call, module, call.addressOf(call.first + 1));
  if (self.valid() && where.valid())
    setField(call, self, hidden::submodule(stringArgument(call, 0)), addressValue(where));
  return call.done(where.valid() ? addressValue(where) : module);
}

void collectParameters(const Machine &machine, const Row &row, const Address &module, std::vector<Value> &out,
                       std::set<Address> &seen) {
  constexpr std::size_t limit = 32;
  if (!module.valid() || out.size() >= limit || !seen.insert(module).second)
    return;
  Value record = machine.memory.read(row, module);
  if (!is(record, ValueKind::Record))
    return;
  for (const auto &[name, field] : record->fields) {
    if (hidden::isParameter(name) && is(field, ValueKind::Tensor))
      out.push_back(parameterHandle(module.field(name)));
    else if (hidden::isSubmodule(name) && is(field, ValueKind::Address))
      collectParameters(machine, row, field->address, out, seen);
  }
}

// parameters(), buffers() and their named forms, as a list of handles.
Outcomes parameterList(Call &call, bool named) {
  std::vector<Value> handles;
  std::set<Address> seen;
  collectParameters(call.machine, call.row, call.objectAddress(), handles, seen);
  Value object = call.object();
  if (handles.empty()) {
    if (!is(object, ValueKind::Record) || !object->origin)
      return call.done(is(object, ValueKind::Record) ? listValue(call.resultType(), {}) : unknownValue());
    Value each =
        call.machine.memory.symbolic("at::Tensor", applyTerm(".", {object->origin, textTerm("parameters")}),
                                     object->function, SymbolRole::Module);
    handles = {each};
  }
  if (named) {
    for (Value &handle : handles)
      handle = recordValue(
          "std::pair",
          {{"first", scalarValue(symbolTerm("a parameter's name"))}, {"second", handle}, {"value", handle}});
  }
  constexpr std::size_t keptApart = 4;
  return call.done(handles.size() <= keptApart && !object->origin
                       ? listValue(call.resultType(), std::move(handles))
                       : summaryList(call.resultType(), std::move(handles)));
}

std::optional<Outcomes> moveCall(Call &call) {
  Address self = call.objectAddress();
  std::optional<Placement> target;
  for (std::size_t i = 0; i < call.argCount() && !target; ++i) {
    Value value = call.arg(i);
    if (is(value, ValueKind::Device) || is(value, ValueKind::Options))
      target = deviceOf(call.machine, call.row, value);
    else if (is(value, ValueKind::Unknown) &&
             call.machine.types.classOf(call.fact.operands[call.first + i].type) == TypeClass::Device)
      target = Placement::unknown();
  }
  if (target && self.valid()) {
    Placement placement = call.machine.concrete(call.row, *target);
    moveModule(call.machine, call.row, self, placement,
               call.machine.note(nullptr, StepKind::ModuleMoved, call.fact.where,
                                 call.fact.operands[0].text.str(), placement.describe()));
  }
  return call.done(unknownValue());
}

// The module record that torch's own module class makes.
Value builtinModule(Call &call, Name type, const std::string &module, const std::vector<Value> &args) {
  const models::Module *model = models::module(module);
  std::map<Name, Value> fields;
  Machine &machine = call.machine;
  if (model->hasParameters) {
    fields[hidden::parameters()] =
        tensorValue(Placement::cpu(), someRank,
                    machine.note(nullptr, StepKind::ModuleMade, call.fact.where, module, "cpu"));
  } else if (model->hasOptionalWeight) {
    std::vector<Value> tensors;
    for (const Value &arg : args)
      machine.collectTensors(call.row, arg, tensors);
    if (!tensors.empty())
      fields[hidden::parameters()] =
          tensorValue(machine.memory.placementOf(call.row, tensors[0]), tensors[0]->rank,
                      machine.memory.historyOf(call.row, tensors[0]));
  }
  return recordValue(type, std::move(fields));
}

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

// A module argument of Sequential, ModuleList or AnyModule: a holder, a shared_ptr, or a module by value.
Address childModule(Call &call, const Argument &arg) {
  Address where = moduleOf(call, arg.value, arg.address);
  if (is(arg.value, ValueKind::Record) && call.machine.types.isModule(arg.value->type)) {
    Address copy = call.machine.allocate(call.row, call.frame, call.fact, arg.value->type);
    call.machine.memory.write(call.row, copy, arg.value);
    return copy;
  }
  return where;
}

Outcomes forwardSequential(Call &call, const Address &module, std::vector<Argument> args) {
  Value children = call.machine.memory.read(call.row, module.field(hidden::children()));
  if (!is(children, ValueKind::List) || isSummary(children))
    return call.done(unknownValue());
  std::vector<Outcome> current;
  current.push_back({call.row, args.empty() ? unknownValue() : args[0].value});
  bool first = true;
  for (const Value &child : children->elements) {
    std::vector<Outcome> next;
    for (Outcome &outcome : current) {
      Call step{call.machine, call.frame, outcome.row, call.fact, call.first};
      std::vector<Argument> input = first ? args : std::vector<Argument>{{outcome.result, {}}};
      for (Outcome &after : forwardModule(step, child->address, input, "a layer of the Sequential", nullptr))
        next.push_back(std::move(after));
    }
    first = false;
    if (next.size() > bounds::rowsPerOutcome)
      next.resize(bounds::rowsPerOutcome);
    current = std::move(next);
  }
  return current;
}

Outcomes forwardBuiltin(Call &call, const Address &module, const Value &record, const std::string &kind,
                        const std::vector<Argument> &args, const std::string &name, const History &owner) {
  const models::Module *model = models::module(kind);
  if (model->forward.rule == Rule::Container)
    return kind == "Sequential" ? forwardSequential(call, module, args) : call.done(unknownValue());
  std::vector<TensorUse> uses;
  const std::size_t offset = call.fact.operands.size() - std::min(call.fact.operands.size(), args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::vector<Value> tensors;
    call.machine.collectTensors(call.row, args[i].value, tensors);
    const Operand *operand =
        offset + i < call.fact.operands.size() ? &call.fact.operands[offset + i] : nullptr;
    for (Value &tensor : tensors)
      uses.push_back({std::move(tensor), operand, {}});
  }
  const bool owns = record->fields.count(hidden::parameters()) || (record->origin && model->hasParameters);
  if (owns) {
    Value cell = call.machine.memory.read(call.row, module.field(hidden::parameters()));
    Value handle =
        is(cell, ValueKind::Tensor) ? parameterHandle(module.field(hidden::parameters())) : unknownValue();
    if (is(cell, ValueKind::Tensor) && cell->placement.kind == PlacementKind::Symbol)
      handle = cell;
    const std::string what = model->hasOptionalWeight ? "the weight of " : "the parameters of ";
    TensorUse parameters{handle, nullptr, what + name};
    parameters.owner = owner;
    if (is(handle, ValueKind::Tensor))
      uses.insert(model->forward.isLoss ? uses.end() : uses.begin(), parameters);
    else
      return call.done(unknownValue());
  }
  return applyOp(call, model->forward, std::move(uses), kind + "::forward");
}

} // namespace

void moveModule(Machine &machine, Row &row, const Address &where, const Placement &placement,
                const History &history) {
  std::set<Address> seen;
  std::vector<Address> work{where};
  while (!work.empty()) {
    Address module = work.back();
    work.pop_back();
    if (!module.valid() || !seen.insert(module).second)
      continue;
    Value record = machine.memory.read(row, module);
    if (!is(record, ValueKind::Record))
      continue;
    if (machine.types.isProject(record->type) && history && placement.isKnown())
      machine.movedClasses.emplace(record->type, history->step);
    if (record->origin)
      row.moves.push_back({record->origin, placement, history});
    Value moved = record;
    for (const auto &[name, field] : record->fields) {
      if (hidden::isParameter(name) && is(field, ValueKind::Tensor))
        moved = withField(moved, name, tensorValue(placement, field->rank, history));
      else if (hidden::isSubmodule(name) && is(field, ValueKind::Address))
        work.push_back(field->address);
    }
    machine.memory.write(row, module, withField(moved, "@moved", deviceValue(placement, history)));
  }
}

const Function *findMethod(const Machine &machine, Name type, std::string_view name) {
  const Type *record = machine.program.type(type);
  if (!record)
    return nullptr;
  for (Name id : record->methods)
    if (const Function *method = machine.program.function(id))
      if (method->hasBody && lastPart(method->name.view()) == name)
        return method;
  for (Name base : record->bases)
    if (base != type)
      if (const Function *method = findMethod(machine, base, name))
        return method;
  return nullptr;
}

Outcomes forwardModule(Call &call, const Address &module, std::vector<Argument> args, const std::string &name,
                       const History &owner) {
  Value record = call.machine.memory.read(call.row, module);
  if (!is(record, ValueKind::Record))
    return call.done(unknownValue());
  const std::string kind = call.machine.types.builtinModule(record->type);
  if (!kind.empty())
    return forwardBuiltin(call, module, record, kind, args, name, owner);
  if (const Function *forward = findMethod(call.machine, record->type, "forward"))
    return invokeForwarded(call, call.row, *forward, module, args);
  const std::string base = call.machine.types.builtinModuleBase(record->type);
  if (!base.empty())
    return forwardBuiltin(call, module, record, base, args, name, owner);
  return call.done(unknownValue());
}

namespace {

std::optional<Outcomes> modelHolder(Call &call, std::string_view method) {
  Value held = call.object();
  if (method == "operator->" || method == "get" || method == "ptr" || method == "operator*") {
    if (method == "operator*" || (method == "get" && call.fact.resultIsAddress))
      return call.done(held);
    if (call.fact.resultIsAddress) // const shared_ptr<Contained>& ptr()
      return call.done(addressValue(call.objectAddress()));
    return call.done(held);
  }
  if (method == "operator()") {
    if (!is(held, ValueKind::Address))
      return call.done(unknownValue());
    return forwardModule(call, held->address, call.forwardedFrom(0), call.fact.operands[0].text.str(),
                         held->history);
  }
  if (method == "is_empty")
    return call.done(scalarValue(intTerm(is(held, ValueKind::Null))));
  if (method == "operator bool")
    return call.done(scalarValue(intTerm(!is(held, ValueKind::Null))));
  return std::nullopt;
}

std::optional<Outcomes> modelContainerModule(Call &call, std::string_view method) {
  const Address self = call.objectAddress();
  if (method == "push_back" || method == "append" || method == "insert") {
    const std::size_t last = call.argCount() - 1;
    std::string name = call.argCount() > 1 ? stringArgument(call, 0) : std::string();
    appendChild(call, self, childModule(call, call.forwarded(last)), name);
    return call.done(unknownValue());
  }
  Value children = call.machine.memory.read(call.row, self.field(hidden::children()));
  if (method == "operator[]" || method == "ptr" || method == "at") {
    Value index = call.argCount() ? call.arg(0) : unknownValue();
    if (is(index, ValueKind::Scalar) && is(children, ValueKind::List)) {
      Value element = call.machine.memory.read(
          call.row, self.field(hidden::children()).element(call.row.resolve(index->term)));
      if (!is(element, ValueKind::Address))
        return call.done(unknownValue());
      if (method == "at" || !call.fact.resultIsAddress)
        return call.done(element);
      Address temporary = call.machine.allocate(call.row, call.frame, call.fact, call.resultType());
      call.machine.memory.write(call.row, temporary, element);
      return call.done(addressValue(temporary));
    }
    return call.done(unknownValue());
  }
  if (method == "size" && is(children, ValueKind::List) && !isSummary(children))
    return call.done(scalarValue(intTerm(static_cast<std::int64_t>(children->elements.size()))));
  if (method == "children" || method == "modules")
    return call.done(is(children, ValueKind::List) ? children : unknownValue());
  return std::nullopt;
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

// Builder methods of option structs: tensors given to them stay in them.
std::optional<Outcomes> modelNnOptions(Call &call) {
  const Address self = call.objectAddress();
  Value object = call.object();
  if (call.argCount() == 1 && is(call.arg(0), ValueKind::Tensor) && self.valid()) {
    if (!is(object, ValueKind::Record))
      call.machine.memory.write(call.row, self, recordValue(call.fact.operands[0].type));
    setField(call, self, Name(lastPart(call.fact.name.view())), call.arg(0));
  }
  if (call.fact.resultIsAddress && self.valid())
    return call.done(addressValue(self));
  return call.done(call.machine.unknownResult(call));
}

// torch::jit::load(path[, device]): without a device the parameters are where they were saved.
Value loadScript(Call &call) {
  Placement placement = Placement::unknown();
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i)
    if (Value value = call.operand(i); is(value, ValueKind::Device))
      placement = call.machine.concrete(call.row, value->placement);
  History history =
      call.machine.note(nullptr, StepKind::Loaded, call.fact.where, "the script", placement.describe());
  return recordValue("torch::jit::Module",
                     {{hidden::parameters(), tensorValue(placement, someRank, history)}});
}

// forward() of a scripted module: what goes in must be where its parameters are, and what comes out is there
// too.
Outcomes runScript(Call &call) {
  Machine &machine = call.machine;
  Value script = call.object();
  const Address self = call.objectAddress();
  if (!self.valid() || !script->fields.count(hidden::parameters()))
    return call.done(unknownValue());
  std::vector<TensorUse> uses{{parameterHandle(self.field(hidden::parameters())), nullptr,
                               "the parameters of " + call.fact.operands[0].text.str()}};
  for (TensorUse &use : tensorUses(call, 1))
    uses.push_back(std::move(use));
  Machine::Requirement requirement;
  requirement.operation = "forward of a scripted module";
  Placement placement = machine.requireSame(call, uses, requirement);
  return call.done(tensorValue(placement, someRank, machine.memory.historyOf(call.row, uses[0].tensor)));
}

std::optional<Outcomes> modelModuleMethod(Call &call, std::string_view method) {
  if (method == "to" || method == "cuda" || method == "cpu")
    return moveCall(call);
  if (method == "register_module" || method == "replace_module")
    return registerModule(call);
  if (method == "register_parameter" || method == "register_buffer")
    return registerTensor(call);
  if (method == "parameters" || method == "buffers")
    return parameterList(call, false);
  if (method == "named_parameters" || method == "named_buffers")
    return parameterList(call, true);
  if (method == "as" || method == "shared_from_this")
    return call.done(registerOf(call.row, call.fact.operands[0].reg));
  if (method == "forward" || method == "forward_with_packed_input" || method == "operator()") {
    const Address self = call.objectAddress();
    if (self.valid())
      return forwardModule(call, self, call.forwardedFrom(0), call.fact.operands[0].text.str(),
                           registerOf(call.row, call.fact.operands[0].reg)->history);
    return call.done(unknownValue());
  }
  return std::nullopt;
}

} // namespace

std::optional<Outcomes> modelModules(Call &call) {
  std::string_view name = call.fact.name.view();
  const models::Api api = models::api(name);
  if (api.role == "module_to" && call.fact.hasObject)
    return moveCall(call);
  if (api.role == "module_parameters" && call.fact.hasObject)
    return parameterList(call, startsWith(lastPart(name), "named_"));
  if (api.role == "jit_load")
    return call.done(loadScript(call));
  if (api.role == "jit_module")
    return runScript(call);
  if (!call.fact.hasObject || !startsWith(name, "torch::nn::"))
    return std::nullopt;
  std::string_view method = lastPart(name);
  std::string_view cls = name.substr(0, name.size() - method.size() - 2);
  if (cls == "torch::nn::ModuleHolder")
    return modelHolder(call, method);
  if (cls == "torch::nn::AnyModule")
    return modelAnyModule(call, method);
  if (endsWith(cls, "Options"))
    return modelNnOptions(call);
  if (cls == "torch::nn::SequentialImpl" || cls == "torch::nn::ModuleListImpl" ||
      cls == "torch::nn::ModuleDictImpl")
    if (std::optional<Outcomes> outcomes = modelContainerModule(call, method))
      return outcomes;
  return modelModuleMethod(call, method);
}

// Constructors of holders, torch's own modules and AnyModule; `args` are values.
std::optional<Value> constructModule(Call &call, Name type, const std::vector<Value> &args) {
  Machine &machine = call.machine;
  switch (machine.types.classOf(type)) {
  case TypeClass::Holder: {
    if (args.size() == 1 && (is(args[0], ValueKind::Null) || is(args[0], ValueKind::Address)))
      return args[0];
    const Name impl = machine.types.inner(type);
    if (impl.empty())
      return std::nullopt;
    Address where = machine.allocate(call.row, call.frame, call.fact, impl);
    std::vector<Argument> forwarded;
    for (std::size_t i = 0; i < args.size(); ++i)
      forwarded.push_back({args[i], call.argCount() == args.size() ? call.forwarded(i).address : Address()});
    // Holders of containers take modules, and keep them.
    const std::string kind = machine.types.builtinModule(impl);
    if (kind == "Sequential" || kind == "ModuleList") {
      machine.memory.write(call.row, where, recordValue(impl));
      for (const Argument &arg : forwarded)
        appendChild(call, where, childModule(call, arg), {});
      return addressValue(where);
    }
    std::vector<Row> rows = machine.construct(call.frame, call.fact, call.row, impl, where, forwarded);
    if (rows.empty())
      return unknownValue();
    if (rows.size() > 1)
      mergeRows(rows, 1, 1, symbolTerm("constructed"));
    call.row = std::move(rows.front());
    return addressValue(where);
  }
  case TypeClass::AnyModule:
    for (std::size_t i = 0; i < args.size(); ++i) {
      Address child = childModule(call, {args[i], {}});
      if (child.valid())
        return addressValue(child);
    }
    return unknownValue();
  default:
    break;
  }
  if (const std::string kind = machine.types.builtinModule(type); !kind.empty())
    return builtinModule(call, type, kind, args);
  const Type *record = machine.program.type(type);
  std::string_view name = record ? record->templateName.view() : type.view();
  if (startsWith(name, "torch::nn::") && endsWith(name, "Options")) {
    std::map<Name, Value> fields;
    for (std::size_t i = 0; i < args.size(); ++i)
      if (is(args[i], ValueKind::Tensor))
        fields[Name("argument" + std::to_string(i))] = args[i];
    return recordValue(type, std::move(fields));
  }
  return std::nullopt;
}

} // namespace devicetidy
