//===- Datasets.cpp - what loaders of torch::data hand out ---===//
//
// A dataset is a record; map(transform) wraps it in one that holds the dataset and the transform. A batch is
// one example, taken through the transforms from the inside out.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/torch/Datasets.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/torch/Tensors.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

const Name dataField("data"), meanField("mean"), deviationField("stddev"),
    exampleType("torch::data::Example");

History loadedAt(Call &call, const char *what) {
  return call.machine.note(nullptr, StepKind::Loaded, call.fact.where, what, "cpu");
}

// What the row of a class's constructors says of its objects: the cpu of dataset(cpu).
std::string_view kindOf(const Machine &machine, Name type) {
  const Type *record = machine.program.type(type);
  const std::vector<models::Row> &rows =
      models::rows((record ? record->templateName.str() : type.str()) + "::construct");
  return rows.empty() ? std::string_view() : rows[0].effects.back().detail();
}

using ExampleOf = Value (*)(Call &call, const Value &dataset);

Value exampleOnCpu(Call &call, const Value &) {
  const Value tensor = tensorValue(Placement::cpu(), someRank, loadedAt(call, "the dataset"));
  return recordValue(exampleType, {{"data", tensor}, {"target", tensor}});
}

Value exampleOfTensors(Call &call, const Value &dataset) {
  std::vector<Value> tensors;
  for (const auto &[field, value] : dataset->fields)
    call.machine.collectTensors(call.row, value, tensors);
  return tensors.empty() ? unknownValue()
                         : recordValue(exampleType, {{"data", tensors[0]}, {"target", tensors[0]}});
}

// One example of a dataset that wraps no other: what get() returns where the program says that.
Outcomes plainExample(Call &call, const Value &dataset) {
  static const std::map<std::string_view, ExampleOf> examples = {{"cpu", exampleOnCpu},
                                                                 {"tensors", exampleOfTensors}};
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
  const auto example = examples.find(kindOf(machine, dataset->type));
  return call.done(example == examples.end() ? unknownValue() : example->second(call, dataset));
}

Outcomes inRow(const Row &row, Value example) {
  Outcomes outcomes;
  outcomes.push_back({row, std::move(example)});
  return outcomes;
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
  return inRow(row, unknownValue());
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

using Transform = Outcomes (*)(Call &call, const Row &row, const Value &transform, const Value &example);

Value functionIn(const Value &transform) {
  const auto function = transform->fields.find(hidden::function);
  return function == transform->fields.end() ? unknownValue() : function->second;
}

// Lambda gets an example, BatchLambda a batch of them, TensorLambda the data of one.
Outcomes callOnExample(Call &call, const Row &row, const Value &transform, const Value &example) {
  return callValue(call, row, functionIn(transform), {{example, {}}});
}

Outcomes callOnBatch(Call &call, const Row &row, const Value &transform, const Value &example) {
  return callValue(call, row, functionIn(transform), {{summaryList("std::vector", {example}), {}}});
}

Outcomes callOnData(Call &call, const Row &row, const Value &transform, const Value &example) {
  const auto data = example->fields.find(dataField);
  if (data == example->fields.end())
    return inRow(row, unknownValue());
  Outcomes outcomes = callValue(call, row, functionIn(transform), {{data->second, {}}});
  for (Outcome &outcome : outcomes)
    outcome.result = withField(example, dataField, outcome.result);
  return outcomes;
}

Outcomes stackExamples(Call &call, const Row &row, const Value &, const Value &example) {
  return inRow(row, stacked(call.machine, row, example));
}

Outcomes keepExample(Call &, const Row &row, const Value &, const Value &example) {
  return inRow(row, example);
}

Outcomes transformed(Call &call, const Row &row, const Value &transform, const Value &example) {
  static const std::map<std::string_view, Transform> transforms = {{"example", callOnExample},
                                                                   {"batch", callOnBatch},
                                                                   {"data", callOnData},
                                                                   {"stack", stackExamples},
                                                                   {"same", keepExample}};
  if (is(transform, ValueKind::Record) && call.machine.types.isProject(transform->type))
    return runTransform(call, row, transform, example);
  const auto known = transforms.find(kindOf(call.machine, transform->type));
  return known == transforms.end() ? inRow(row, unknownValue())
                                   : known->second(call, row, transform, example);
}

// One example of a dataset, however it is wrapped.
Outcomes exampleOf(Call &call, Value dataset) {
  if (is(dataset, ValueKind::Address))
    dataset = call.machine.memory.read(call.row, dataset->address);
  auto inner = dataset->fields.find(hidden::dataset);
  if (inner == dataset->fields.end())
    return plainExample(call, dataset);
  Outcomes outcomes;
  for (Outcome &outcome : exampleOf(call, inner->second)) {
    auto transform = dataset->fields.find(hidden::transform);
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

std::optional<Outcomes> makeLoader(Call &call, const Effect &) {
  Outcomes outcomes;
  for (Outcome &outcome : exampleOf(call, call.argCount() ? call.arg(0) : unknownValue())) {
    Value loader = recordValue(hidden::loaderType, {{hidden::batch, outcome.result}});
    Address where = call.machine.allocate(outcome.row, call.frame, call.fact, hidden::loaderType);
    call.machine.memory.write(outcome.row, where, loader);
    outcomes.push_back({outcome.row, addressValue(where)});
  }
  return outcomes;
}

// The loader that the object is, or leads to; nowhere when it is none.
Address loaderOf(const Call &call) {
  const Value object = call.object();
  const Address where = is(object, ValueKind::Address) ? object->address : call.objectAddress();
  return call.machine.memory.read(call.row, where)->fields.count(hidden::batch) ? where : Address();
}

// begin() of a loader: its iterator stands for it.
std::optional<Outcomes> beginLoading(Call &call, const Effect &) {
  const Address loader = loaderOf(call);
  return loader.valid() ? std::optional(call.done(addressValue(loader))) : std::nullopt;
}

// What the iterator of a loader points to.
std::optional<Outcomes> batchAt(Call &call, const Effect &) {
  const Address loader = loaderOf(call);
  if (!loader.valid())
    return std::nullopt;
  const Value batch = call.machine.memory.read(call.row, loader)->fields.at(hidden::batch);
  const Address taken = call.machine.allocate(call.row, call.frame, call.fact, call.resultType());
  call.machine.memory.write(call.row, taken, takenBatch(call, batch));
  return call.done(addressValue(taken));
}

// Normalize called on a tensor: subtracts its mean and divides by its standard deviation.
std::optional<Outcomes> normalize(Call &call, const Effect &) {
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

// map(transform) of a dataset.
std::optional<Outcomes> mapDataset(Call &call, const Effect &) {
  return call.done(
      recordValue(call.resultType(), {{hidden::dataset, call.object()}, {hidden::transform, call.arg(0)}}));
}

// get() and get_batch() of a dataset.
std::optional<Outcomes> getExample(Call &call, const Effect &) {
  Outcomes outcomes = exampleOf(call, call.object());
  for (Outcome &outcome : outcomes)
    outcome.result = batchOf(call.machine, call.resultType(), outcome.result);
  return outcomes;
}

std::optional<Outcomes> makeDataset(const Making &making, const Effect &) {
  std::map<Name, Value> fields;
  for (std::size_t i = 0; i < making.args.size(); ++i)
    fields[Name("argument" + std::to_string(i))] = making.arg(i);
  return making.done(recordValue(making.type, std::move(fields)));
}

std::optional<Outcomes> makeWrappingDataset(const Making &making, const Effect &) {
  std::map<Name, Value> fields{{hidden::dataset, making.arg(0)}};
  if (making.args.size() > 1)
    fields[hidden::transform] = making.arg(1);
  return making.done(recordValue(making.type, std::move(fields)));
}

std::optional<Outcomes> makeTransform(const Making &making, const Effect &) {
  return making.done(recordValue(making.type, {{hidden::function, making.arg(0)}}));
}

// data/transforms/tensor.h: the statistics are made by torch::tensor, with three dimensions.
std::optional<Outcomes> makeNormalize(const Making &making, const Effect &) {
  const Call &call = making.call;
  const Value made = tensorValue(
      Placement::cpu(), 3,
      call.machine.note(nullptr, StepKind::Created, call.fact.where, call.fact.name.str(), "cpu"));
  return making.done(recordValue(making.type, {{meanField, made}, {deviationField, made}}));
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

Words datasetWords() {
  return {{{"data_loader", makeLoader},
           {"begin_loading", beginLoading},
           {"batch_at", batchAt},
           {"map_dataset", mapDataset},
           {"get_example", getExample},
           {"normalize", normalize}},
          {},
          {{"dataset", makeDataset},
           {"wrapping_dataset", makeWrappingDataset},
           {"transform", makeTransform},
           {"normalize_transform", makeNormalize}}};
}

} // namespace devicetidy
