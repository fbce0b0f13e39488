//===- Datasets.cpp - what loaders of torch::data hand out ---===//
//
// A dataset is a record; map(transform) wraps it in one that holds the dataset and the transform. A batch is
// one example, taken through the transforms from the inside out.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/torch/Datasets.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/torch/Tensors.h"

namespace devicetidy {
namespace {

const Name batchField("@batch"), datasetField("@dataset"), transformField("@transform"),
    functionField("@function"), dataField("data"), meanField("mean"), deviationField("stddev");

History loadedAt(Call &call, const char *what) {
  return call.machine.note(nullptr, StepKind::Loaded, call.fact.where, what, "cpu");
}

std::string_view templateOf(const Machine &machine, Name type) {
  const Type *record = machine.program.type(type);
  return record ? record->templateName.view() : type.view();
}

// What get() of a project's dataset returns, as one example.
Outcomes plainExample(Call &call, const Value &dataset) {
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

// Runs the method of a project's transform that torch would call.
Outcomes runTransform(Call &call, const Row &row, const Value &transform, const Value &example) {
  Machine &machine = call.machine;
  auto run = [&](std::string_view name, const Value &input) -> std::optional<Outcomes> {
    const Function *method = findMethod(machine, transform->type, name);
    if (!method)
      return std::nullopt;
    Row inner = row;
    Address self = machine.allocate(inner, call.frame, call.fact, transform->type);
    machine.memory.write(inner, self, transform);
    return invokeForwarded(call, std::move(inner), *method, self, {{input, {}}});
  };
  const Value batch = is(example, ValueKind::List) ? example : summaryList("std::vector", {example});
  if (std::optional<Outcomes> outcomes = run("apply_batch", batch))
    return std::move(*outcomes);
  if (std::optional<Outcomes> outcomes = run("apply", example))
    return std::move(*outcomes);
  auto data = example->fields.find(dataField);
  if (machine.types.derivesFrom(transform->type, "torch::data::transforms::TensorTransform") &&
      data != example->fields.end())
    if (std::optional<Outcomes> outcomes = run("operator()", data->second)) {
      for (Outcome &outcome : *outcomes)
        outcome.result = withField(example, dataField, outcome.result);
      return std::move(*outcomes);
    }
  Outcomes unknown;
  unknown.push_back({row, unknownValue()});
  return unknown;
}

// Lambda gets an example, BatchLambda a batch of them, TensorLambda the data of one.
Outcomes runLambda(Call &call, const Row &row, std::string_view kind, const Value &function,
                   const Value &example) {
  if (kind == "Lambda")
    return callValue(call, row, function, {{example, {}}});
  if (kind == "BatchLambda")
    return callValue(call, row, function, {{summaryList("std::vector", {example}), {}}});
  Outcomes outcomes;
  auto data = example->fields.find(dataField);
  if (kind != "TensorLambda" || data == example->fields.end()) {
    outcomes.push_back({row, unknownValue()});
    return outcomes;
  }
  for (Outcome &outcome : callValue(call, row, function, {{data->second, {}}}))
    outcomes.push_back({std::move(outcome.row), withField(example, dataField, outcome.result)});
  return outcomes;
}

// A stack of examples: each of its tensors has one dimension more.
Value stacked(const Machine &machine, const Row &row, const Value &example) {
  if (is(example, ValueKind::Tensor)) {
    const int rank = example->rank >= 0 ? example->rank + 1 : someRank;
    return tensorValue(machine.memory.placementOf(row, example), rank,
                       machine.memory.historyOf(row, example));
  }
  ValueData batch = *example;
  for (auto &[name, field] : batch.fields)
    field = stacked(machine, row, field);
  return is(example, ValueKind::Record) ? makeValue(std::move(batch)) : example;
}

Outcomes transformed(Call &call, const Row &row, const Value &transform, const Value &example) {
  Machine &machine = call.machine;
  if (is(transform, ValueKind::Record) && machine.types.isProject(transform->type))
    return runTransform(call, row, transform, example);
  const std::string_view name = is(transform, ValueKind::Record) ? templateOf(machine, transform->type) : "";
  auto function = transform->fields.find(functionField);
  if (function != transform->fields.end())
    return runLambda(call, row, lastPart(name), function->second, example);
  Outcomes outcomes; // torch's own Stack and Normalize keep the device
  outcomes.push_back({row, lastPart(name) == "Stack"       ? stacked(machine, row, example)
                           : lastPart(name) == "Normalize" ? example
                                                           : unknownValue()});
  return outcomes;
}

// One example of a dataset, however it is wrapped.
Outcomes exampleOf(Call &call, Value dataset) {
  if (is(dataset, ValueKind::Address))
    dataset = call.machine.memory.read(call.row, dataset->address);
  auto inner = dataset->fields.find(datasetField);
  if (inner == dataset->fields.end())
    return plainExample(call, dataset);
  Outcomes outcomes;
  for (Outcome &outcome : exampleOf(call, inner->second)) {
    auto transform = dataset->fields.find(transformField);
    if (transform == dataset->fields.end()) {
      outcomes.push_back(std::move(outcome));
      continue;
    }
    for (Outcome &after : transformed(call, outcome.row, transform->second, outcome.result))
      outcomes.push_back(std::move(after));
  }
  return outcomes;
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
  Outcomes outcomes;
  for (Outcome &outcome : exampleOf(call, call.argCount() ? call.arg(0) : unknownValue())) {
    Value loader = recordValue("@loader", {{batchField, outcome.result}});
    Address where = call.machine.allocate(outcome.row, call.frame, call.fact, "@loader");
    call.machine.memory.write(outcome.row, where, loader);
    outcomes.push_back({outcome.row, addressValue(where)});
  }
  return outcomes;
}

// begin() of a loader, and what its iterator points to.
std::optional<Outcomes> modelLoader(Call &call, std::string_view method) {
  Value loader = call.object();
  Address where = call.objectAddress();
  if (is(loader, ValueKind::Address)) {
    where = loader->address;
    loader = call.machine.memory.read(call.row, where);
  }
  auto batch = loader->fields.find(batchField);
  if (batch == loader->fields.end())
    return std::nullopt;
  if (method == "begin" || method == "end")
    return call.done(addressValue(where));
  if (method == "operator*" || method == "operator->") {
    Address taken = call.machine.allocate(call.row, call.frame, call.fact, call.resultType());
    call.machine.memory.write(call.row, taken, takenBatch(call, batch->second));
    return call.done(addressValue(taken));
  }
  return std::nullopt;
}

// Normalize called on a tensor: subtracts its mean and divides by its standard deviation.
Outcomes normalize(Call &call) {
  std::vector<TensorUse> uses = tensorUses(call, 1);
  const Value transform = call.object();
  for (const Name &statistic : {meanField, deviationField})
    if (const auto field = transform->fields.find(statistic);
        field != transform->fields.end() && is(field->second, ValueKind::Tensor))
      uses.push_back({field->second, nullptr, call.fact.operands[0].text.str() + "." + statistic.str()});
  Machine::Requirement requirement;
  requirement.operation = "Normalize";
  requirement.cpuScalars = true;
  if (uses.size() != 3)
    return call.done(call.machine.unknownResult(call));
  const Placement placement = call.machine.requireSame(call, uses, requirement);
  return call.done(tensorValue(placement, someRank, call.machine.memory.historyOf(call.row, uses[0].tensor)));
}

std::optional<Outcomes> modelDataset(Call &call, std::string_view method) {
  if (method == "map" || method == "batch") {
    std::map<Name, Value> fields{{datasetField, call.object()}};
    if (method == "map" && call.argCount())
      fields[transformField] = call.arg(0);
    return call.done(recordValue(call.resultType(), std::move(fields)));
  }
  if (method == "get_batch" || method == "get") {
    Outcomes outcomes = exampleOf(call, call.object());
    for (Outcome &outcome : outcomes)
      outcome.result = batchOf(call.machine, call.resultType(), outcome.result);
    return outcomes;
  }
  return std::nullopt;
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

std::optional<Outcomes> modelDatasets(Call &call) {
  const std::string_view name = call.fact.name.view();
  if (models::api(name).role == "data_loader" && !call.fact.hasObject)
    return makeLoader(call);
  if (!call.fact.hasObject || call.fact.operands.empty())
    return std::nullopt;
  if (name == "torch::data::transforms::Normalize::operator()")
    return normalize(call);
  if (startsWith(name, "torch::data::datasets::"))
    return modelDataset(call, lastPart(name));
  if (startsWith(name, "torch::data::"))
    return modelLoader(call, lastPart(name));
  return std::nullopt;
}

std::optional<Value> constructDataset(Call &call, Name type, const std::vector<Value> &args) {
  const std::string_view name = templateOf(call.machine, type);
  if (startsWith(name, "torch::data::datasets::")) {
    std::map<Name, Value> fields;
    if (startsWith(name, "torch::data::datasets::TensorDataset"))
      for (std::size_t i = 0; i < args.size(); ++i)
        fields[Name("tensor" + std::to_string(i))] = args[i];
    return recordValue(type, std::move(fields));
  }
  if (startsWith(name, "torch::data::transforms::")) {
    std::map<Name, Value> fields;
    if (!args.empty() && is(args[0], ValueKind::Function))
      fields[functionField] = args[0];
    if (lastPart(name) ==
        "Normalize") // data/transforms/tensor.h: made by torch::tensor, with three dimensions
      for (const Name &statistic : {meanField, deviationField})
        fields[statistic] = tensorValue(
            Placement::cpu(), 3,
            call.machine.note(nullptr, StepKind::Created, call.fact.where, call.fact.name.str(), "cpu"));
    return recordValue(type, std::move(fields));
  }
  return std::nullopt;
}

} // namespace devicetidy
