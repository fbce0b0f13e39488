//===- Data.cpp - datasets and loaders, torch::load, optimizers ------===//
#include "analyzer/solve/Config.h"
#include "analyzer/solve/Devices.h"
#include "analyzer/solve/Registers.h"
#include "analyzer/solve/Tensors.h"
#include "analyzer/solve/NameParts.h"

#include <algorithm>

namespace devicetidy {
namespace {

const Name batchField("@batch"), datasetField("@dataset"), parametersField("@parameters");

History loadedAt(Call &call, const char *what) {
  return call.machine.note(nullptr, StepKind::Loaded, call.fact.where, what, "cpu");
}

// The dataset a chain of map(...) calls started from: records keep it as they are passed along.
Value datasetOf(const Call &call, Value value) {
  for (int hops = 0; hops < 8; ++hops) {
    if (is(value, ValueKind::Address))
      value = call.machine.memory.read(call.row, value->address);
    auto inner = value->fields.find(datasetField);
    if (inner == value->fields.end())
      return value;
    value = inner->second;
  }
  return value;
}

// What get() of a project's dataset returns, as one example.
Outcomes exampleOf(Call &call, const Value &dataset) {
  Machine &machine = call.machine;
  if (is(dataset, ValueKind::Record) && machine.types.isProject(dataset->type))
    for (std::string_view method : {"get", "get_batch"})
      if (const Function *get = findMethod(machine, dataset->type, method)) {
        Row row = call.row;
        Address self = machine.allocate(row, call.frame, call.fact, dataset->type);
        machine.memory.write(row, self, dataset);
        return machine.invoke(call.frame, call.fact, std::move(row), *get, self,
                              {scalarValue(symbolTerm("index of an example"))});
      }
  const Type *type = machine.program.type(dataset->type);
  const std::string_view name = type ? type->templateName.view() : dataset->type.view();
  if (startsWith(name, "torch::data::datasets::TensorDataset")) {
    std::vector<Value> tensors;
    for (const auto &[field, value] : dataset->fields)
      machine.collectTensors(call.row, value, tensors);
    if (!tensors.empty())
      return call.done(recordValue("torch::data::Example", {{"data", tensors[0]}, {"target", tensors[0]}}));
    return call.done(unknownValue());
  }
  if (startsWith(name, "torch::data::datasets::")) {
    Value tensor = tensorValue(Placement::cpu(), someRank, loadedAt(call, "the dataset"));
    return call.done(recordValue("torch::data::Example", {{"data", tensor}, {"target", tensor}}));
  }
  return call.done(unknownValue());
}

// One batch of element type `type` made of examples: Example<>, vector<Example<>>, or the dataset's own type.
Value batchOf(Machine &machine, Name type, const Value &example) {
  if (is(example, ValueKind::List))
    return example;
  if (machine.types.classOf(type) == TypeClass::List)
    return summaryList(type, {example});
  return example;
}

Outcomes makeLoader(Call &call) {
  Value dataset = datasetOf(call, call.argCount() ? call.arg(0) : unknownValue());
  Outcomes outcomes;
  for (Outcome &outcome : exampleOf(call, dataset)) {
    Value loader = recordValue("@loader", {{batchField, outcome.result}});
    Address where = call.machine.allocate(outcome.row, call.frame, call.fact, "@loader");
    call.machine.memory.write(outcome.row, where, loader);
    outcomes.push_back({outcome.row, addressValue(where)});
  }
  return outcomes;
}

std::optional<Outcomes> modelLoader(Call &call, std::string_view method) {
  Value loader = call.object();
  if (is(loader, ValueKind::Address))
    loader = call.machine.memory.read(call.row, loader->address);
  auto batch = loader->fields.find(batchField);
  if (batch == loader->fields.end())
    return std::nullopt;
  if (method == "begin" || method == "end")
    return call.done(addressValue(call.objectAddress()));
  return std::nullopt;
}

// dataset.map(transform): transforms of torch keep the device.
std::optional<Outcomes> modelDataset(Call &call, std::string_view method) {
  if (method == "map" || method == "batch") {
    Value dataset = datasetOf(call, call.object());
    return call.done(recordValue(call.resultType(), {{datasetField, dataset}}));
  }
  if (method == "get_batch" || method == "get") {
    Value dataset = datasetOf(call, call.object());
    Outcomes outcomes = exampleOf(call, dataset);
    for (Outcome &outcome : outcomes)
      outcome.result = batchOf(call.machine, call.resultType(), outcome.result);
    return outcomes;
  }
  return std::nullopt;
}

// torch::load(x, path[, device]): modules and tensors go to the archive's device unless one is given.
Outcomes load(Call &call) {
  Machine &machine = call.machine;
  Placement placement = Placement::unknown();
  for (std::size_t i = 1; i < call.fact.operands.size(); ++i) {
    Value value = call.operand(i);
    if (is(value, ValueKind::Device))
      placement = machine.concrete(call.row, value->placement);
  }
  History history =
      machine.note(nullptr, StepKind::Loaded, call.fact.where,
                   call.fact.operands.empty() ? "" : call.fact.operands[0].text.str(), placement.describe());
  const Address target = call.addressOf(0);
  Value held = call.operand(0);
  if (is(held, ValueKind::Address))
    moveModule(machine, call.row, held->address, placement, history);
  else if (is(held, ValueKind::Record) && machine.types.isModule(held->type))
    moveModule(machine, call.row, target, placement, history);
  else if (target.valid() && machine.types.classOf(call.fact.operands[0].type) == TypeClass::Tensor)
    machine.memory.write(call.row, target, tensorValue(placement, someRank, history));
  else if (target.valid() && machine.types.classOf(call.fact.operands[0].type) == TypeClass::List)
    machine.memory.write(
        call.row, target,
        summaryList(call.fact.operands[0].type, {tensorValue(placement, someRank, history)}));
  return call.done(unknownValue());
}

// Functions that need all tensors of one list on one device.
Outcomes requireList(Call &call, std::string_view operation) {
  Machine::Requirement requirement;
  requirement.operation = std::string(operation);
  std::vector<TensorUse> uses = tensorUses(call, 0);
  for (TensorUse &use : uses)
    use.text = "a parameter of " + (use.operand ? use.operand->text.str() : std::string("the list"));
  call.machine.requireSame(call, uses, requirement);
  return call.done(call.machine.unknownResult(call));
}

} // namespace

Value takenBatch(Call &call, const Value &value) {
  if (is(value, ValueKind::Tensor) && !value->address.valid()) {
    return withHistory(value, call.machine.note(value->history, StepKind::Loaded, call.fact.where, "a batch",
                                                value->placement.describe()));
  }
  ValueData parts = *value;
  for (auto &[name, field] : parts.fields)
    field = takenBatch(call, field);
  for (auto *list : {&parts.elements, &parts.summary})
    for (Value &element : *list)
      element = takenBatch(call, element);
  return parts.fields.empty() && parts.elements.empty() && parts.summary.empty()
             ? value
             : makeValue(std::move(parts));
}

std::optional<Outcomes> modelData(Call &call) {
  std::string_view name = call.fact.name.view();
  const models::Api api = models::api(name);
  if (api.role == "data_loader" && !call.fact.hasObject)
    return makeLoader(call);
  if (api.role == "load_module" || api.role == "load_tensor") {
    if (call.fact.hasObject) {
      if (Address self = call.objectAddress(); self.valid())
        moveModule(call.machine, call.row, self, Placement::unknown(), nullptr);
      return call.done(unknownValue());
    }
    return load(call);
  }
  if (api.role == "clip_grad_norm" || api.role == "parameters_to_vector")
    return requireList(call, lastPart(name));
  if (api.role == "pack_sequence") {
    // The lengths stay on the CPU, wherever the sequences are.
    std::vector<TensorUse> lengths{
        {tensorValue(Placement::cpu(), someRank, nullptr), nullptr, "the 'lengths' argument"}};
    for (TensorUse &use : tensorUses(call, 1))
      lengths.push_back(std::move(use));
    Machine::Requirement requirement;
    requirement.operation = std::string(lastPart(name));
    if (lengths.size() > 1)
      call.machine.requireSame(call, lengths, requirement);
    return call.done(unknownValue());
  }
  if (api.role == "pad_packed_sequence")
    return call.done(unknownValue());
  if (api.role == "no_effect" || api.role == "save" || api.role == "manual_seed" ||
      api.role == "synchronize" || api.role == "init_inplace") {
    if (call.fact.resultIsAddress && !call.fact.operands.empty())
      return call.done(registerOf(call.row, call.fact.operands[0].reg));
    if (api.role == "init_inplace" && call.argCount())
      return call.done(call.arg(0));
    return call.done(call.machine.unknownResult(call));
  }
  if (!call.fact.hasObject || call.fact.operands.empty())
    return std::nullopt;
  if (startsWith(name, "torch::data::datasets::"))
    return modelDataset(call, lastPart(name));
  if (startsWith(name, "torch::data::"))
    return modelLoader(call, lastPart(name));
  return std::nullopt;
}

std::optional<Value> constructData(Call &call, Name type, const std::vector<Value> &args) {
  const Type *record = call.machine.program.type(type);
  std::string_view name = record ? record->templateName.view() : type.view();
  if (startsWith(name, "torch::data::datasets::")) {
    std::map<Name, Value> fields;
    if (startsWith(name, "torch::data::datasets::TensorDataset"))
      for (std::size_t i = 0; i < args.size(); ++i)
        fields[Name("tensor" + std::to_string(i))] = args[i];
    return recordValue(type, std::move(fields));
  }
  if (startsWith(name, "torch::optim::"))
    return recordValue(type, {{parametersField, args.empty() ? unknownValue() : args[0]}});
  return std::nullopt;
}


std::optional<Value> modelConstructor(Call &call, Name type, const std::vector<Value> &args) {
  using Constructor = std::optional<Value> (*)(Call &, Name, const std::vector<Value> &);
  for (Constructor constructor :
       {Constructor(constructConfig), Constructor(constructDevice), Constructor(constructModule),
        Constructor(constructPointer), Constructor(constructContainer), Constructor(constructData)})
    if (std::optional<Value> made = constructor(call, type, args))
      return made;
  return std::nullopt;
}

} // namespace devicetidy
