//===- Attributes.cpp - attributes of Python values ---===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/Options.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Groups.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/python/Words.h"
#include "analyzer/solve/library/torch/Modules.h"
#include "analyzer/solve/library/torch/OptimizerState.h"

#include <algorithm>

namespace devicetidy {
namespace python {

bool setsAttribute(const Types &types, Name type, Name attribute) {
  const Type *known = types.program.type(type);
  return known && (std::any_of(known->fields.begin(), known->fields.end(),
                               [&](const Field &field) { return field.name == attribute; }) ||
                   std::any_of(known->bases.begin(), known->bases.end(),
                               [&](Name base) { return setsAttribute(types, base, attribute); }));
}

namespace {

using models::Effect;

std::string lastWord(const Call &call) { return std::string(lastPart(call.fact.name.view())); }

Argument nameArgument(const std::string &name) { return {scalarValue(textTerm(Name(name))), {}, Name(name)}; }

Value bound(const Argument &object, const std::string &name) {
  return recordValue(boundType, {{"self", object.value}, {"name", scalarValue(textTerm(Name(name)))}});
}

// What programs hang on parameters (`p.shard = ..`): parameter and name -> value.
RootId hungOnParameters(Machine &machine) {
  static const Name id("attributes of parameters");
  return machine.memory.global(id, {}, {});
}

Name keyOfAttribute(const Value &parameter, const std::string &name) {
  return Name(keyOfParameter(parameter->address).str() + "." + name);
}

void hangOnParameter(Machine &machine, Row &row, const Value &parameter, const std::string &name,
                     const Value &value) {
  const Value known = row.store.get(hungOnParameters(machine));
  row.store.set(hungOnParameters(machine),
                withField(known && is(known, ValueKind::Record) ? known : recordValue({}),
                          keyOfAttribute(parameter, name), value));
}

// Null: nothing is known to hang there.
Value hungOnParameter(Machine &machine, const Row &row, const Value &parameter, const std::string &name) {
  const Value known = row.store.get(hungOnParameters(machine));
  if (!parameter->address.valid() || !known || !is(known, ValueKind::Record))
    return nullptr;
  const auto found = known->fields.find(keyOfAttribute(parameter, name));
  return found == known->fields.end() ? nullptr : found->second;
}

Outcomes ofTensor(Call &call, Row row, const Argument &object, const std::string &name) {
  if (name == "data" || name == "grad")
    return done(row, call.machine.memory.snapshot(row, object.value));
  if (name == "device" || name == "is_cuda") {
    Outcomes outcomes = callTorch(call, std::move(row), "at::Tensor::" + name, {object}, true,
                                  name == "device" ? "c10::Device" : "bool");
    for (Outcome &outcome : outcomes)
      if (is(outcome.result, ValueKind::Device)) {
        ValueData device = *outcome.result;
        device.pinned = true;
        outcome.result = makeValue(std::move(device));
      }
    return outcomes;
  }
  if (isOneOf(name, {"T", "mT", "H", "mH", "real", "imag"}))
    return callTorch(call, std::move(row), "at::Tensor::t", {object}, true);
  if (name == "dtype")
    return done(row, libraryFunction("torch.dtype"));
  if (isOneOf(name, {"shape", "layout", "ndim", "requires_grad", "is_leaf", "grad_fn", "itemsize", "names"}))
    return done(row, unknownValue());
  const Value hung = hungOnParameter(call.machine, row, object.value, name);
  return done(row, hung ? hung : bound(object, name));
}

Outcomes ofDevice(Call &call, Row row, const Argument &object, const std::string &name) {
  if (name == "index")
    return callTorch(call, std::move(row), "c10::Device::index", {object}, true, "long");
  return done(row, name == "type" ? object.value : unknownValue()); // compared with texts
}

// What a module has registered, by name: its _parameters, _buffers or _modules.
Value registered(const Address &self, const Value &record, const std::string &what) {
  std::map<Name, Value> entries;
  for (const auto &[field, held] : record->fields) {
    const bool isModule = hidden::isSubmodule(field);
    const std::string_view prefix = isModule ? hidden::submodulePrefix : hidden::parameterPrefix;
    if (field == hidden::parameters && what != "_modules") // those of a module of the library have no names
      entries[anyEntryField] = parameterHandle(self.field(field), held->rank);
    if ((!isModule && !hidden::isParameter(field)) || field == hidden::parameters)
      continue;
    const std::string name(field.view().substr(prefix.size()));
    const bool isBuffer = record->fields.count(Name(bufferMark + name)) != 0;
    if (what != (isModule ? "_modules" : isBuffer ? "_buffers" : "_parameters"))
      continue;
    const bool isNamed = !startsWith(name, madeAtLine) && name.find('#') == std::string::npos;
    entries[isNamed ? Name("[" + name + "]") : anyEntryField] =
        isModule ? held : parameterHandle(self.field(field), held->rank);
  }
  entries.emplace(anyEntryField, unknownValue()); // what else it may have, None too
  entries.emplace(ownerField, addressValue(self));
  return recordValue(dictType, std::move(entries));
}

Outcomes ofRecord(Call &call, Row row, const Argument &object, const std::string &name) {
  Machine &machine = call.machine;
  const Address self = object.value->address;
  const Value record = machine.memory.read(row, self);
  if (const Value assigned = assignedAttribute(machine, row, record->type, Name(name));
      assigned && isOfClass(machine, row, record, Name(name)))
    return done(row, assigned);
  if (const auto field = record->fields.find(Name(name)); field != record->fields.end()) {
    const Value value = machine.readMarked(row, self.field(Name(name)));
    if (const Function *get = methodOfDescriptor(machine, row, value, "__get__")) {
      Given given;
      given.positional = {object, {libraryFunction(Name(std::string(classPrefix) + record->type.str())), {}}};
      return callFunction(call, std::move(row), *get, nullptr, value->address, given);
    }
    // Module.to makes new tensors of buffers: who has taken one keeps the old.
    const bool isBuffer = is(value, ValueKind::Tensor) && record->fields.count(Name(bufferMark + name));
    return done(row, isBuffer ? machine.memory.snapshot(row, value) : value);
  }
  if (name == "__class__")
    return done(row, machine.types.isProject(record->type)
                         ? libraryFunction(Name(std::string(classPrefix) + record->type.str()))
                         : unknownValue());
  if (name == "__dict__")
    return done(row, recordValue(varsType, {{"object", object.value}}));
  const std::string get = "@get " + name;
  if (isOfSeveralClasses(machine, record, get))
    return done(row, attributeOfGiven(record, name));
  if (const Function *property = findMethod(machine, record->type, get))
    return callFunction(call, std::move(row), *property, nullptr, self, {});
  if (findMethod(machine, record->type, name)) // what is put in its place later does not change it
    return done(row, bound(object, name == "forward" ? classForward : name));
  if (const auto child = record->fields.find(Name(hidden::submodule(Name(name))));
      child != record->fields.end())
    return done(row, child->second);
  if (machine.types.isModule(record->type)) {
    if (isOneOf(name, {"weight", "bias"}) && record->fields.count(hidden::parameters))
      return done(row, parameterHandle(self.field(hidden::parameters)));
    if (isOneOf(name, {"_parameters", "_buffers", "_modules"}))
      return done(row, allocated(call, row, dictType, registered(self, record, name)));
    if (name == "device" && setsAttribute(machine.types, record->type, "device"))
      return done(row, unknownValue()); // that it has is not known here
    if (name == "device") {
      const Placement placement = modulePlacement(machine, row, self);
      return done(row, deviceValue(placement));
    }
    if (!machine.types.isProject(record->type) ||
        isOneOf(name, {"parameters", "to", "train", "eval", "forward"}))
      return done(row, bound(object, name));
  }
  const bool isOwn = record->origin && (setsAttribute(machine.types, record->type, Name(name)) ||
                                        !machine.types.fieldType(record->type, Name(name)).empty());
  if (const Function *other = isOwn ? nullptr : findMethod(machine, record->type, "__getattr__")) {
    Given given;
    given.positional.push_back({scalarValue(textTerm(Name(name))), {}});
    return callFunction(call, std::move(row), *other, nullptr, self, given);
  }
  if (record->fields.count(Name(anyOption)))
    return done(row, optionOf(name));
  if (isOneOf(record->type.view(), {"std::tuple<at::Tensor, at::Tensor>"}))
    return done(row, unknownValue());
  if (record->origin && machine.types.hasUnknownBase(record->type) &&
      !setsAttribute(machine.types, record->type, Name(name))) // the library's class has set it
    return done(row, openValue(applyTerm(op::member, {record->origin, textTerm(Name(name))}),
                               Name(object.text.str() + "." + name)));
  if (!record->origin) // what it has behind what is known of its class, for as long as nothing changes it
    return done(row, withIdentity(applyTerm(
                         op::call, {applyTerm(op::address, {intTerm(self.root)}), textTerm(Name(name))})));
  const Value held = machine.memory.read(row, self.field(Name(name)));
  const bool isOfGiven = applies(record->origin, op::pointee);
  if (const Value made = isOfGiven ? keptOnCpu(machine, row, record->type, Name(name)) : nullptr)
    return done(row, made);
  if (const Value part = partOfGiven(machine, row, record, name))
    return done(row, part);
  return done(row, isOfGiven && is(held, ValueKind::Unknown) && !isOpen(held) ? attributeOfGiven(record, name)
                                                                              : held);
}

// f.__name__ of a function or class of the program.
Value nameOf(const Value &value) {
  const std::string_view whole = value->function.empty() ? value->type.view() : value->function.view();
  return scalarValue(textTerm(Name(whole.substr(whole.find_last_of(":.") + 1))));
}

} // namespace

Outcomes attributeOf(Call &call, Row row, const Argument &given, const std::string &name) {
  const bool asksForDevice = name == "device" || name == "is_cuda"; // of a tensor or a model: its device
  const Argument object{asksForDevice ? asTensor(call, given.value) : whereAsked(call, given.value),
                        given.address, given.text, given.written};
  const Value &value = object.value;
  if (isOpen(value))
    return done(row, isOneOf(name, {"shape", "dtype", "ndim"}) ? unknownValue()
                                                               : attributeOfOpen(call, row, value, name));
  if (is(value, ValueKind::Tensor))
    return ofTensor(call, std::move(row), object, name);
  if (name == "__name__" && is(value, ValueKind::Function))
    return done(row, nameOf(value));
  if (is(value, ValueKind::Function) && startsWith(value->type.view(), classPrefix)) {
    const Name type(value->type.view().substr(classPrefix.size()));
    const bool isMethod = findMethod(call.machine, type, name) || !call.machine.types.isProject(type);
    const Value held = isMethod ? nullptr : attributeNow(call.machine, row, type, Name(name));
    const bool isFixed =
        held && (is(held, ValueKind::Tensor) || is(held, ValueKind::Scalar) || is(held, ValueKind::Device) ||
                 is(held, ValueKind::Address) || is(held, ValueKind::Null)); // every object finds the same
    return done(row, isFixed ? held : bound(object, name));
  }
  if (is(value, ValueKind::Device))
    return ofDevice(call, std::move(row), object, name);
  if (is(value, ValueKind::Address) && is(call.machine.memory.read(row, value->address), ValueKind::Record))
    return ofRecord(call, std::move(row), object, name);
  if (const Value held = behind(call, value);
      name == "__class__" && (is(held, ValueKind::List) || isDict(held)))
    return done(row, libraryFunction(isDict(held)                    ? "builtins.dict"
                                     : is(value, ValueKind::Address) ? "builtins.list"
                                                                     : "builtins.tuple"));
  if (is(value, ValueKind::Address) || is(value, ValueKind::Scalar))
    return done(row, bound(object, name));
  if (is(value, ValueKind::Record)) { // what an operator gives: .values, .indices
    const bool isFirst = isOneOf(name, {"values", "min", "eigenvalues", "sign", "Q", "U", "solution", "P",
                                        "LU", "inverse", "L", "mantissa", "hist"}),
               isSecond = isOneOf(name, {"indices", "max", "eigenvectors", "logabsdet", "R", "S", "Vh", "V",
                                         "residuals", "pivots", "exponent", "bin_edges"});
    const auto part = value->fields.find(Name(isFirst ? "0" : isSecond ? "1" : name));
    return done(row, part == value->fields.end() ? unknownValue() : part->second);
  }
  if (name == "is_cuda")
    return done(row, scalarValue(isCudaTerm(Placement::unknown())));
  return done(row, is(value, ValueKind::Unknown) && value->term
                       ? withIdentity(pathFrom(value->term, "." + name))
                       : unknownValue());
}

namespace {

std::optional<Outcomes> attributeWord(Call &call, const Effect &) {
  return attributeOf(call, call.row,
                     {call.operand(0), {}, call.fact.operands[0].text, &call.fact.operands[0]},
                     lastWord(call));
}

// A container runs what is registered under a name, also when that was replaced.
void replaceChild(Machine &machine, Row &row, const Address &self, const Value &before,
                  const std::string &name, const Value &child) {
  const auto old = before->fields.find(Name(hidden::submodule(Name(name))));
  const auto children = before->fields.find(hidden::children);
  if (old == before->fields.end() || children == before->fields.end() ||
      !is(children->second, ValueKind::List))
    return;
  std::vector<Value> elements = children->second->elements;
  for (Value &each : elements)
    if (same(each, old->second))
      each = child;
  machine.memory.write(row, self.field(hidden::children),
                       listValue(children->second->type, std::move(elements)));
}

// nn.Module.__setattr__: parameters and modules are registered, a buffer stays one.
std::optional<Outcomes> setModule(Call &call, const Address &self, const Value &record,
                                  const std::string &name, const Argument &value) {
  Machine &machine = call.machine;
  const bool isTensor = is(value.value, ValueKind::Tensor);
  const bool isModule = is(value.value, ValueKind::Address) &&
                        machine.types.isModule(machine.memory.read(call.row, value.value->address)->type);
  const bool isParameter = isTensor && value.value->address.valid() &&
                           machine.memory.info(value.value->address.root).type == parameterType;
  // A parameter of another module is registered with both.
  const bool isShared =
      isTensor && value.value->address.path && hidden::isParameter(value.value->address.path->field);
  const bool isBuffer = isTensor && record->fields.count(Name(hidden::parameter(Name(name))));
  if (is(value.value, ValueKind::Unknown) && isOneOf(name, {"weight", "bias"}) &&
      record->fields.count(hidden::parameters)) // those it was made with are gone
    machine.memory.write(call.row, self.field(hidden::parameters),
                         tensorValue(Placement::unknown(), unknownRank, nullptr));
  if (!isModule && !isParameter && !isShared && !isBuffer)
    return std::nullopt;
  const Value given =
      isParameter || isShared ? machine.memory.read(call.row, value.value->address) : value.value;
  const std::string registers = isModule ? "register_module" : "register_parameter";
  Outcomes outcomes = callTorch(call, call.row, "torch::nn::Module::" + registers,
                                {{addressValue(self), {}, call.fact.operands[0].text, &call.fact.operands[0]},
                                 nameArgument(name),
                                 {given, {}, value.text, value.written}},
                                true);
  for (Outcome &outcome : outcomes) {
    if (isModule)
      replaceChild(machine, outcome.row, self, record, name, value.value);
    machine.memory.write(outcome.row, self.field(Name(name)), isModule ? value.value : outcome.result);
    if (isParameter) // the same object, which moves with the module
      machine.memory.write(outcome.row, value.value->address, outcome.result);
  }
  return outcomes;
}

} // namespace

const Function *methodOfDescriptor(const Machine &machine, const Row &row, const Value &value,
                                   const std::string &name) {
  const Value held =
      is(value, ValueKind::Address) ? machine.memory.read(row, value->address) : unknownValue();
  return is(held, ValueKind::Record) && machine.types.isProject(held->type)
             ? findMethod(machine, held->type, name)
             : nullptr;
}

Outcomes setAttribute(Call &call, Row row, const Argument &on, const std::string &name,
                      const Argument &value) {
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  if (std::optional<Outcomes> outcomes = callSpecial(inner, on, "__setattr__", {nameArgument(name), value}))
    return std::move(*outcomes);
  return setOwnAttribute(call, std::move(row), on, name, value);
}

Outcomes setOwnAttribute(Call &call, Row row, const Argument &on, const std::string &name,
                         const Argument &value) {
  Machine &machine = call.machine;
  const Value &object = on.value;
  if (is(object, ValueKind::Function) && startsWith(object->type.view(), classPrefix))
    assignToClass(machine, row, Name(object->type.view().substr(classPrefix.size())), Name(name),
                  value.value);
  if (isOpen(object))
    setAttributeOfOpen(call, row, object, name, value.value);
  if (is(object, ValueKind::Tensor) && name == "data" && object->address.valid() &&
      is(value.value, ValueKind::Tensor))
    machine.memory.write(row, object->address, machine.memory.snapshot(row, value.value));
  else if (is(object, ValueKind::Tensor) && object->address.valid() &&
           !isOneOf(name, {"grad", "requires_grad"}))
    hangOnParameter(machine, row, object, name, value.value);
  const Value record =
      is(object, ValueKind::Address) ? machine.memory.read(row, object->address) : unknownValue();
  if (!is(record, ValueKind::Record))
    return done(row, nullValue());
  if (name == "__dict__") {
    Call inner{machine, call.frame, row, call.fact, call.first};
    Given given;
    given.positional.push_back(value);
    return *callContainerMethod(inner, row, {recordValue(varsType, {{"object", object}}), {}}, "update",
                                given);
  }
  if (machine.types.isModule(record->type)) {
    Call inner{machine, call.frame, row, call.fact, call.first};
    if (std::optional<Outcomes> outcomes = setModule(inner, object->address, record, name, value))
      return std::move(*outcomes);
  }
  if (const Function *setter = findMethod(machine, record->type, "@set " + name)) {
    Given given;
    given.positional.push_back(value);
    return callFunction(call, std::move(row), *setter, nullptr, object->address, given);
  }
  const Address field = object->address.field(Name(name));
  const Value before = record->fields.count(Name(name)) ? record->fields.at(Name(name)) : unknownValue();
  if (const Function *set = methodOfDescriptor(machine, row, before, "__set__")) {
    Given given;
    given.positional = {on, value};
    return callFunction(call, std::move(row), *set, nullptr, before->address, given);
  }
  machine.memory.write(row, field, value.value);
  return done(row, nullValue());
}

namespace {

std::optional<Outcomes> setWord(Call &call, const Effect &) {
  const auto argument = [&](std::size_t i) {
    return Argument{call.operand(i), {}, call.fact.operands[i].text, &call.fact.operands[i]};
  };
  return setAttribute(call, call.row, argument(0), lastWord(call), argument(1));
}

std::optional<Outcomes> valueWord(Call &call, const Effect &) {
  const std::string name = lastWord(call);
  if (name == "builtins.__name__")
    return call.done(scalarValue(textTerm(call.frame.function.isMain ? "__main__" : "module")));
  if (name == "dt.number")
    return call.done(scalarValue(call.machine.freshScalar(call)));
  const std::optional<Value> backend = backendNamed(name);
  return call.done(backend ? *backend : libraryFunction(Name(name)));
}

} // namespace
} // namespace python

Words pythonAttributeWords() {
  return {
      {{"py_attribute", python::attributeWord}, {"py_set", python::setWord}, {"py_value", python::valueWord}},
      {},
      {}};
}

} // namespace devicetidy
