//===- Data.cpp - packed sequences, optimizers, calls without an effect ---===//
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/torch/Archives.h"
#include "analyzer/solve/library/torch/Datasets.h"
#include "analyzer/solve/library/torch/Devices.h"
#include "analyzer/solve/library/torch/Gradients.h"
#include "analyzer/solve/library/torch/HostAccess.h"
#include "analyzer/solve/library/torch/Kernels.h"
#include "analyzer/solve/library/torch/OptimizerState.h"
#include "analyzer/solve/library/torch/Tensors.h"

#include <algorithm>

namespace devicetidy {
namespace {

// A PackedSequence stands for its data, which are where the sequences were.
Value packed(Call &call) {
  std::vector<Value> tensors;
  call.machine.collectTensors(call.row, call.arg(0), tensors, 1);
  if (tensors.empty())
    return unknownValue();
  return tensorValue(call.machine.memory.placementOf(call.row, tensors[0]), someRank,
                     call.machine.memory.historyOf(call.row, tensors[0]));
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

std::optional<Outcomes> modelData(Call &call) {
  std::string_view name = call.fact.name.view();
  const models::Api api = models::api(name);
  if (std::optional<Outcomes> outcomes = modelKernels(call))
    return outcomes;
  if (std::optional<Outcomes> outcomes = modelElementOfAccessor(call))
    return outcomes;
  if (std::optional<Outcomes> outcomes = modelDatasets(call))
    return outcomes;
  if (std::optional<Outcomes> outcomes = modelArchives(call, api.role))
    return outcomes;
  if (std::optional<Outcomes> outcomes = modelOptimizerState(call))
    return outcomes;
  if (std::optional<Outcomes> outcomes = modelGradients(call))
    return outcomes;
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
    return call.done(packed(call));
  }
  if (api.role == "pad_packed_sequence") // the sequence, and its lengths on the CPU
    return call.done(recordValue(call.resultType(),
                                 {{"0", call.arg(0)}, {"1", tensorValue(Placement::cpu(), 1, nullptr)}}));
  if (api.role == "no_effect" || api.role == "manual_seed" || api.role == "synchronize" ||
      api.role == "init_inplace") {
    if (call.fact.resultIsAddress && !call.fact.operands.empty())
      return call.done(registerOf(call.row, call.fact.operands[0].reg));
    if (api.role == "init_inplace" && call.argCount())
      return call.done(call.arg(0));
    return call.done(call.machine.unknownResult(call));
  }
  return std::nullopt;
}

std::optional<Value> constructData(Call &call, Name type, const std::vector<Value> &args) {
  const Type *record = call.machine.program.type(type);
  std::string_view name = record ? record->templateName.view() : type.view();
  if (std::optional<Value> made = constructDataset(call, type, args))
    return made;
  if (startsWith(name, "torch::optim::"))
    return constructOptimizer(call, type, args);
  return std::nullopt;
}

std::optional<Value> modelConstructor(Call &call, Name type, const std::vector<Value> &args) {
  using Constructor = std::optional<Value> (*)(Call &, Name, const std::vector<Value> &);
  for (Constructor constructor : {Constructor(constructPointer), Constructor(constructContainer),
                                  Constructor(constructData), Constructor(constructStream)})
    if (std::optional<Value> made = constructor(call, type, args))
      return made;
  return std::nullopt;
}

} // namespace devicetidy
