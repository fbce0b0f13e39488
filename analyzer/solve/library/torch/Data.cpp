//===- Data.cpp - packed sequences, lists of parameters, calls without an effect ---===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/torch/Tensors.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

void require(Call &call, const std::vector<TensorUse> &uses) {
  Machine::Requirement requirement;
  requirement.operation = std::string(lastPart(call.fact.name.view()));
  call.machine.requireSame(call, uses, requirement);
}

// The parameters in argument `i` must be on one device.
std::vector<TensorUse> requireParameters(Call &call, std::size_t from) {
  std::vector<TensorUse> uses = tensorUses(call, from);
  for (TensorUse &use : uses) {
    use.text = use.operand ? "a parameter of '" + use.operand->text.str() + "'" : "a parameter of the list";
    use.isDescribed = true;
  }
  require(call, uses);
  return uses;
}

std::optional<Outcomes> joinParameters(Call &call, const Effect &) {
  requireParameters(call, 0);
  return call.done(call.machine.unknownResult(call));
}

// nn/utils/convert_parameters.h: the parameters become slices of the vector.
std::optional<Outcomes> sliceToParameters(Call &call, const Effect &) {
  const Value vector = call.arg(0);
  const Memory &memory = call.machine.memory;
  for (const TensorUse &parameter : requireParameters(call, 1))
    if (is(vector, ValueKind::Tensor) && parameter.tensor->address.valid())
      call.machine.memory.write(call.row, parameter.tensor->address,
                                tensorValue(memory.placementOf(call.row, vector),
                                            memory.rankOf(call.row, parameter.tensor),
                                            memory.historyOf(call.row, vector)));
  return call.done(unknownValue());
}

// A PackedSequence stands for its data, which are where the sequences were. The lengths stay on the CPU.
std::optional<Outcomes> packSequence(Call &call, const Effect &) {
  std::vector<TensorUse> lengths = tensorUses(call, 1);
  lengths.insert(lengths.begin(), lengthsOnCpu());
  if (lengths.size() > 1)
    require(call, lengths);
  std::vector<Value> tensors;
  call.machine.collectTensors(call.row, call.arg(0), tensors, 1);
  if (tensors.empty())
    return call.done(unknownValue());
  return call.done(tensorValue(call.machine.memory.placementOf(call.row, tensors[0]), someRank,
                               call.machine.memory.historyOf(call.row, tensors[0])));
}

// The sequence, and its lengths on the CPU.
std::optional<Outcomes> padPackedSequence(Call &call, const Effect &) {
  return call.done(
      recordValue(call.resultType(), {{"0", call.arg(0)}, {"1", tensorValue(Placement::cpu(), 1, nullptr)}}));
}

// Moves nothing and keeps nothing; a method that gives a reference gives its object.
std::optional<Outcomes> noEffect(Call &call, const Effect &) {
  return call.done(call.fact.resultIsAddress && !call.fact.operands.empty()
                       ? registerOf(call.row, call.fact.operands[0].reg)
                       : call.machine.unknownResult(call));
}

// A builder that gives back its object; other methods of its name are not known.
std::optional<Outcomes> chain(Call &call, const Effect &) {
  return call.fact.resultIsAddress ? std::optional(call.done(addressValue(call.objectAddress())))
                                   : std::nullopt;
}

} // namespace

Words dataWords() {
  return {{{"join_parameters", joinParameters},
           {"slice_to_parameters", sliceToParameters},
           {"pack_sequence", packSequence},
           {"pad_packed_sequence", padPackedSequence},
           {"no_effect", noEffect},
           {"chain", chain}},
          {},
          {}};
}

} // namespace devicetidy
