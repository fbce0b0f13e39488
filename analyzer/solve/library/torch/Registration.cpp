//===- Registration.cpp - what a module registers: parameters, buffers, submodules ---===//
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/torch/Modules.h"
#include "analyzer/solve/library/torch/Words.h"

#include <algorithm>

namespace devicetidy {

using models::Effect;

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

namespace {

std::optional<Name> textArgument(const Call &call, std::size_t i) {
  const Value value = call.arg(i);
  return is(value, ValueKind::Scalar) ? textOf(call.row.resolve(value->term)) : std::nullopt;
}

} // namespace

std::string stringArgument(const Call &call, std::size_t i) {
  if (std::optional<Name> text = textArgument(call, i))
    return text->str();
  return std::string(madeAtLine) + std::to_string(call.fact.where.line);
}

Value movedDevice(const Machine &machine, const Row &row, const Address &where) {
  const Value record = where.valid() ? machine.memory.read(row, where) : unknownValue();
  const auto moved = record->fields.find(hidden::moved);
  const bool isKnown = moved != record->fields.end() && is(moved->second, ValueKind::Device);
  return isKnown ? moved->second : nullptr;
}

History registeredIn(const Call &call, const Address &self, const std::string &name,
                     const Placement &placement, History before) {
  const Value device = movedDevice(call.machine, call.row, self);
  const Placement moved = device ? call.row.resolve(device->placement) : Placement::unknown();
  const bool isLate = moved.isKnown() && !(moved == placement);
  return call.machine.note(std::move(before), StepKind::Registered, call.fact.where, name,
                           isLate ? moved.describe() : std::string());
}

namespace {

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

// register_parameter and register_buffer: the module holds the tensor; the result is a handle on it.
std::optional<Outcomes> registerTensor(Call &call, const Effect &) {
  Machine &machine = call.machine;
  const Address self = call.objectAddress();
  Value tensor = call.arg(1);
  const Name cell = hidden::parameter(stringArgument(call, 0));
  Value held = tensor;
  if (is(tensor, ValueKind::Tensor)) {
    const Placement placement = machine.memory.placementOf(call.row, tensor);
    held = tensorValue(placement, tensor->rank,
                       registeredIn(call, self, stringArgument(call, 0), placement,
                                    machine.memory.historyOf(call.row, tensor)));
  }
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

std::optional<Outcomes> registerModule(Call &call, const Effect &) {
  const Address self = call.objectAddress();
  Value module = call.arg(1);
  const Address where = moduleOf(call, module, call.addressOf(call.first + 1));
  if (self.valid() && where.valid()) {
    std::string name = stringArgument(call, 0);
    if (!textArgument(call, 0)) // in a loop the place alone would stand for several modules
      name += "#" + std::to_string(where.root);
    noteRegistered(call, self, stringArgument(call, 0), where);
    setField(call, self, hidden::submodule(name), addressValue(where));
  }
  return call.done(where.valid() ? addressValue(where) : module);
}

using Path = std::optional<std::string>;

// The path of what `prefix` has under `field`: what a loop registers has no name that is known.
Path pathOf(const Path &prefix, Name field, std::string_view fieldPrefix) {
  const std::string_view name = field.view().substr(fieldPrefix.size());
  return prefix && name.find('#') == std::string_view::npos ? Path(*prefix + std::string(name))
                                                            : std::nullopt;
}

// What a torch::nn module calls its parameters, which it keeps in one cell: where it has several, two
// handles say so.
std::vector<Path> ownPaths(const Machine &machine, Name type, const Path &prefix) {
  const models::Module *model = machine.types.builtinModuleBase(type);
  const bool isKnown = prefix && model && !model->hasOtherParameters;
  const auto named = [&](const char *name) { return isKnown ? Path(*prefix + name) : std::nullopt; };
  return model && model->hasOneParameter ? std::vector{named("weight")}
                                         : std::vector{named("weight"), named("bias")};
}

void collectTensors(const Machine &machine, const Row &row, const Address &module, const Path &prefix,
                    std::vector<RegisteredTensor> &out, std::set<Address> &seen) {
  if (!module.valid() || !seen.insert(module).second)
    return;
  const Value record = machine.memory.read(row, module);
  if (!is(record, ValueKind::Record))
    return;
  for (const auto &[name, field] : record->fields) {
    if (hidden::isParameter(name) && is(field, ValueKind::Tensor)) {
      const std::vector<Path> paths = name == hidden::parameters
                                          ? ownPaths(machine, record->type, prefix)
                                          : std::vector{pathOf(prefix, name, hidden::parameterPrefix)};
      if (!isWithin(out.size() + paths.size(), bounds::parametersOfModule, Bound::ParametersOfModule))
        return;
      for (const Path &path : paths)
        out.push_back({path, parameterHandle(module.field(name))});
    } else if (hidden::isSubmodule(name) && is(field, ValueKind::Address)) {
      Path below = pathOf(prefix, name, hidden::submodulePrefix);
      collectTensors(machine, row, field->address, below ? Path(*below + ".") : below, out, seen);
    }
  }
}

std::vector<Value> handlesOf(const std::vector<RegisteredTensor> &tensors) {
  std::vector<Value> handles;
  for (const RegisteredTensor &each : tensors)
    handles.push_back(each.handle);
  return handles;
}

} // namespace

std::vector<RegisteredTensor> registeredTensors(const Machine &machine, const Row &row,
                                                const Address &module) {
  std::vector<RegisteredTensor> tensors;
  std::set<Address> seen;
  collectTensors(machine, row, module, "", tensors, seen);
  return tensors;
}

Address submoduleAt(const Machine &machine, const Row &row, Address module, std::string_view path) {
  while (!path.empty() && module.valid()) {
    const std::string_view part = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    const Value record = machine.memory.read(row, module);
    const auto child = record->fields.find(Name(hidden::submodule(Name(part))));
    const bool isThere = is(record, ValueKind::Record) && child != record->fields.end() &&
                         is(child->second, ValueKind::Address);
    module = isThere ? child->second->address : Address();
  }
  return module;
}

void noteRegistered(Call &call, const Address &self, const std::string &name, const Address &added) {
  Memory &memory = call.machine.memory;
  const Value moved = movedDevice(call.machine, call.row, self);
  if (!moved || !call.row.resolve(moved->placement).isKnown())
    return;
  for (const Value &handle : handlesOf(registeredTensors(call.machine, call.row, added))) {
    const Value held = memory.read(call.row, handle->address);
    const Placement placement = memory.placementOf(call.row, handle);
    memory.write(call.row, handle->address,
                 withHistory(held, registeredIn(call, self, name, placement, held->history)));
  }
}

namespace {

struct NamedModule {
  std::string name;
  Value module;
};

// What is registered in `module`, all the way down when `deep`. False when some of it is not known.
bool collectModules(const Machine &machine, const Row &row, const Address &module, const std::string &prefix,
                    bool deep, std::vector<NamedModule> &out) {
  const Value record = machine.memory.read(row, module);
  if (!is(record, ValueKind::Record) || record->origin ||
      !isWithin(out.size(), bounds::modulesOfModule, Bound::ModulesOfModule))
    return false;
  if (const auto held = record->fields.find(hidden::children);
      held != record->fields.end() && (!is(held->second, ValueKind::List) || isSummary(held->second)))
    return false;
  for (const auto &[name, field] : record->fields)
    if (hidden::isSubmodule(name)) {
      if (!is(field, ValueKind::Address))
        return false;
      const std::string path = prefix + name.str().substr(hidden::submodule({}).size());
      out.push_back({path, field});
      if (deep && !collectModules(machine, row, field->address, path + ".", deep, out))
        return false;
    }
  return true;
}

// children() and modules() and what they are with names: the modules registered in the call's object.
std::optional<Outcomes> moduleList(Call &call, const Effect &effect) {
  const bool named = effect.says("named"), deep = effect.says("deep");
  const Value self = call.argCount() ? call.arg(call.argCount() - 1) : unknownValue(); // include_self
  const Address object = call.objectAddress();
  std::vector<NamedModule> modules;
  if (deep && call.row.numberOf(self) != 0)
    modules.push_back({"", addressValue(object)});
  if (!object.valid() || !collectModules(call.machine, call.row, object, "", deep, modules))
    return call.done(call.machine.unknownResult(call));
  std::vector<Value> elements;
  for (const NamedModule &each : modules) {
    const Value name = scalarValue(textTerm(each.name));
    elements.push_back(
        named ? recordValue("std::pair",
                            {{"first", name}, {"key", name}, {"second", each.module}, {"value", each.module}})
              : each.module);
  }
  return call.done(listValue(call.resultType(), std::move(elements)));
}

} // namespace

Placement commonPlacement(const Machine &machine, const Row &row, const std::vector<Value> &tensors) {
  const Placement common =
      tensors.empty() ? Placement::unknown() : machine.memory.placementOf(row, tensors.front());
  const bool isOne = std::all_of(tensors.begin(), tensors.end(), [&](const Value &tensor) {
    return machine.memory.placementOf(row, tensor) == common;
  });
  return isOne ? common : Placement::unknown();
}

Placement modulePlacement(const Machine &machine, const Row &row, const Address &where) {
  std::vector<NamedModule> below;
  if (!collectModules(machine, row, where, "", /*deep=*/true, below))
    return Placement::unknown();
  return commonPlacement(machine, row, handlesOf(registeredTensors(machine, row, where)));
}

namespace {

// parameters(), buffers() and their named forms, as a list of handles.
std::optional<Outcomes> parameterList(Call &call, const Effect &effect) {
  const std::vector<RegisteredTensor> tensors =
      registeredTensors(call.machine, call.row, call.objectAddress());
  std::vector<Value> handles = handlesOf(tensors);
  Value object = call.object();
  if (handles.empty()) {
    if (!is(object, ValueKind::Record) || !object->origin)
      return call.done(is(object, ValueKind::Record) ? listValue(call.resultType(), {}) : unknownValue());
    Value each = call.machine.memory.symbolic("at::Tensor",
                                              applyTerm(op::member, {object->origin, textTerm("parameters")}),
                                              object->function, SymbolRole::Module);
    handles = {each};
  }
  const bool areKept = handles.size() <= bounds::knownElements && !object->origin;
  if (handles.size() > bounds::knownElements && commonPlacement(call.machine, call.row, handles).isKnown())
    handles.resize(1); // one stands for all when they are on one device
  for (std::size_t i = 0; effect.says("named") && i < handles.size(); ++i) {
    const bool isKnown = handles.size() == tensors.size() && tensors[i].path;
    const Value name = scalarValue(isKnown ? textTerm(*tensors[i].path) : symbolTerm("a parameter's name"));
    handles[i] = recordValue("std::pair", {{"first", name}, {"second", handles[i]}, {"value", handles[i]}});
  }
  return call.done(areKept ? listValue(call.resultType(), std::move(handles))
                           : summaryList(call.resultType(), std::move(handles)));
}

} // namespace

Words registrationWords() {
  return {{{"register_module", registerModule},
           {"register_parameter", registerTensor},
           {"module_parameters", parameterList},
           {"module_list", moduleList}},
          {},
          {}};
}

} // namespace devicetidy
