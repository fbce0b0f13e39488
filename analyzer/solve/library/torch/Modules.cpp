//===- Modules.cpp - torch::nn modules: made, moved, run, held ---------===//
#include "analyzer/solve/library/torch/Modules.h"
#include "analyzer/solve/library/torch/Gradients.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/torch/Tensors.h"

#include <algorithm>

namespace devicetidy {
namespace {

using models::Op;
using models::Rule;

std::optional<Outcomes> moveCall(Call &call) {
  Address self = call.objectAddress();
  std::optional<Placement> target;
  for (std::size_t i = 0; i < call.argCount() && !target; ++i) {
    Value value = call.arg(i);
    if (is(value, ValueKind::Device) || is(value, ValueKind::Options))
      target = deviceOf(call.machine.memory, call.row, value);
    else if (is(value, ValueKind::Unknown) &&
             call.machine.types.classOf(call.fact.operands[call.first + i].type) == TypeClass::Device)
      target = Placement::unknown();
  }
  if (target && self.valid()) {
    Placement placement = call.machine.concrete(call.row, *target);
    if (isAbsent(call.row, placement))
      return Outcomes();
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
  if (module == "Functional")
    keepFunctional(fields, args);
  return recordValue(type, std::move(fields));
}

Outcomes forwardBuiltin(Call &call, const Address &module, const Value &record, const std::string &kind,
                        const std::vector<Argument> &args, const std::string &name, const History &owner) {
  const models::Module *model = models::module(kind);
  if (kind == "Sequential")
    return forwardSequential(call, module, args);
  if (kind == "Functional")
    return forwardFunctional(call, record, args);
  if (model->forward.rule == Rule::Container)
    return call.done(unknownValue());
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
  bool isAssigned = false; // `linear->weight = x`: what forward uses then is not what is registered
  for (const auto &[field, value] : record->fields)
    if (is(value, ValueKind::Tensor) && field.view().substr(0, 1) != "@") {
      isAssigned = true;
      uses.push_back({value, nullptr, "the " + field.str() + " of " + name});
    }
  const bool owns = record->fields.count(hidden::parameters()) || (record->origin && model->hasParameters);
  if (owns && !isAssigned) {
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
    noteMoved(machine, row, module, record, placement);
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
  if (method == "operator[]" && is(held, ValueKind::Address)) {
    if (std::optional<Outcomes> outcomes = modelParameterContainer(call, held->address, method))
      return outcomes;
    return modelContainerModule(call, held->address, method);
  }
  if (method == "is_empty")
    return call.done(scalarValue(intTerm(is(held, ValueKind::Null))));
  if (method == "operator bool")
    return call.done(scalarValue(intTerm(!is(held, ValueKind::Null))));
  return std::nullopt;
}

// Builder methods of option structs: tensors given to them stay in them.
std::optional<Outcomes> modelNnOptions(Call &call) {
  const Address self = call.objectAddress();
  Value object = call.object();
  if (call.argCount() == 1 && is(call.arg(0), ValueKind::Tensor) && self.valid()) {
    if (!is(object, ValueKind::Record))
      call.machine.memory.write(call.row, self, recordValue(call.fact.operands[0].type));
    call.machine.memory.write(call.row, self.field(Name(lastPart(call.fact.name.view()))), call.arg(0));
  }
  if (call.fact.resultIsAddress && self.valid())
    return call.done(addressValue(self));
  return call.done(call.machine.unknownResult(call));
}

// torch::jit::load(path[, device]): without a device the parameters are where they were saved.
Outcomes loadScript(Call &call) {
  Placement placement = Placement::unknown();
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i)
    if (Value value = call.operand(i); is(value, ValueKind::Device))
      placement = call.machine.concrete(call.row, value->placement);
  if (isAbsent(call.row, placement))
    return {};
  History history =
      call.machine.note(nullptr, StepKind::Loaded, call.fact.where, "the script", placement.describe());
  return call.done(
      recordValue("torch::jit::Module", {{hidden::parameters(), tensorValue(placement, someRank, history)}}));
}

// A tensor of one element may be a flag that the script reads on the host.
bool mayBeFlag(const Value &tensor) { return tensor->rank == 0 || tensor->count == 1; }

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
    if (!mayBeFlag(use.tensor))
      uses.push_back(std::move(use));
  Machine::Requirement requirement;
  requirement.operation = "forward of a scripted module";
  Placement placement = machine.requireSame(call, uses, requirement);
  return call.done(tensorValue(placement, someRank, machine.memory.historyOf(call.row, uses[0].tensor)));
}

// A deep copy: the modules below are copied too, the tensors stay where they are.
Address copyModule(Call &call, const Address &module, std::map<RootId, Address> &copies) {
  auto known = copies.find(module.root);
  if (known != copies.end())
    return {known->second.root, module.path};
  const Value record = call.machine.memory.read(call.row, module);
  if (!is(record, ValueKind::Record) || module.path)
    return module;
  const Address copy = call.machine.allocate(call.row, call.frame, call.fact, record->type);
  copies[module.root] = copy;
  const Value copied = rewriteAddresses(record, [&](const Address &inner) {
    return inner.root == module.root ? Address{copy.root, inner.path} : copyModule(call, inner, copies);
  });
  call.machine.memory.write(call.row, copy, copied);
  return copy;
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
  if (method == "clone" && call.objectAddress().valid()) {
    std::map<RootId, Address> copies;
    const Address copy = copyModule(call, call.objectAddress(), copies);
    if (call.argCount() && is(call.arg(0), ValueKind::Device))
      moveModule(call.machine, call.row, copy, call.machine.concrete(call.row, call.arg(0)->placement),
                 call.machine.note(nullptr, StepKind::ModuleMoved, call.fact.where, "the clone",
                                   call.arg(0)->placement.describe()));
    return call.done(addressValue(copy));
  }
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
  if (api.role == "module_list" && call.fact.hasObject)
    return moduleList(call, lastPart(name));
  if (api.role == "jit_load")
    return loadScript(call);
  if (api.role == "jit_module")
    return runScript(call);
  if (api.role == "jit_register" && call.fact.hasObject && call.argCount() > 1) {
    if (is(call.arg(1), ValueKind::Tensor))
      call.machine.memory.write(call.row, call.objectAddress().field(hidden::parameters()), call.arg(1));
    return call.done(unknownValue());
  }
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
  if (cls == "torch::nn::ParameterDictImpl" || cls == "torch::nn::ParameterListImpl")
    if (std::optional<Outcomes> outcomes = modelParameterContainer(call, call.objectAddress(), method))
      return outcomes;
  if (cls == "torch::nn::SequentialImpl" || cls == "torch::nn::ModuleListImpl" ||
      cls == "torch::nn::ModuleDictImpl")
    if (std::optional<Outcomes> outcomes = modelContainerModule(call, call.objectAddress(), method))
      return outcomes;
  return modelModuleMethod(call, method);
}

namespace {

// Does a holder of `impl` made of `value` hold what it holds? A module of another class is an argument of the
// constructor.
bool isHeldAlready(const Call &call, Name impl, const Value &value) {
  if (is(value, ValueKind::Null))
    return true;
  if (!is(value, ValueKind::Address))
    return false;
  const Value held = call.machine.memory.read(call.row, value->address);
  return !is(held, ValueKind::Record) || !call.machine.types.isModule(held->type) ||
         call.machine.types.derivesFrom(held->type, impl.view());
}

} // namespace

void keepModules(Call &call, Name type, const Address &where, const std::vector<Argument> &args) {
  const bool isCopy = args.size() == 1 && is(args[0].value, ValueKind::Record) && args[0].value->type == type;
  if (!isCopy && isOneOf(call.machine.types.builtinModule(type), {"Sequential", "ModuleList", "ModuleDict"}))
    for (const Argument &arg : args)
      appendChildren(call, where, arg);
}

// A holder makes its module as that module's constructor does, on each way through it.
std::optional<Outcomes> constructHolder(Call &call, Name type, const std::vector<Argument> &args) {
  Machine &machine = call.machine;
  const Name impl = machine.types.inner(type);
  if (machine.types.classOf(type) != TypeClass::Holder || impl.empty())
    return std::nullopt;
  if (args.size() == 1 && isHeldAlready(call, impl, args[0].value))
    return call.done(args[0].value);
  Address where = machine.allocate(call.row, call.frame, call.fact, impl);
  Outcomes outcomes;
  for (Row &row : machine.construct(call.frame, call.fact, call.row, impl, where, args))
    outcomes.push_back({std::move(row), addressValue(where)});
  return outcomes;
}

// Constructors of torch's own modules and AnyModule; `args` are values.
std::optional<Value> constructModule(Call &call, Name type, const std::vector<Value> &args) {
  Machine &machine = call.machine;
  switch (machine.types.classOf(type)) {
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
  if (name == "torch::jit::Module")
    return recordValue(type);
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
