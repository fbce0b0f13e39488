#include "analyzer/solve/library/torch/Launches.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/engine/Machine.h"
#include "analyzer/solve/library/torch/HostAccess.h"

#include <algorithm>

namespace devicetidy {
namespace {

// Is there nothing that a kernel could read amiss? Page-locked memory of the host is mapped, and a tensor
// without elements, which often stands for "none", has no memory.
bool isHarmless(const Call &call, const Value &tensor) {
  if (tensor->count == 0)
    return true;
  const std::vector<Step> history = steps(call.machine.memory.historyOf(call.row, tensor));
  return std::any_of(history.begin(), history.end(), [](const Step &step) { return step.mayBePinned; });
}

// The name of the kernel, or what the code calls it where it comes as a value.
std::string kernelName(const Call &call) {
  if (!call.fact.isIndirect)
    return std::string(lastPart(call.fact.name.view()));
  const Value kernel = call.operand(0);
  const Function *known =
      is(kernel, ValueKind::Function) ? call.machine.program.function(kernel->function) : nullptr;
  return known ? std::string(lastPart(known->name.view())) : call.fact.operands[0].text.str();
}

void requireCurrent(Call &call, const TensorUse &memory, const Operand &operand) {
  if (!is(memory.tensor, ValueKind::Tensor) || isHarmless(call, memory.tensor))
    return;
  const Placement current = Placement::cuda(call.row.currentDevice);
  Machine::Requirement requirement;
  requirement.operation = kernelName(call);
  requirement.kind = ConflictKind::Launch;
  call.machine.requireSame(call, {memory, {tensorValue(current, someRank, nullptr), &operand, "the kernel"}},
                           requirement);
}

// What is given by value, with all that it holds; what pointers among it lead to is the host's.
void meetMemory(Call &call, const Operand &operand, const Value &value) {
  if (isTensorMemory(value))
    return requireCurrent(call, memoryUse(value, operand), operand);
  if (is(value, ValueKind::Record)) {
    for (const auto &[name, field] : value->fields)
      meetMemory(call, operand, field);
  } else if (is(value, ValueKind::List)) {
    for (const auto *list : {&value->elements, &value->summary})
      for (const Value &element : *list)
        meetMemory(call, operand, element);
  }
}

} // namespace

void meetLaunch(Call &call) {
  for (std::size_t i = call.first; i < call.fact.operands.size(); ++i)
    meetMemory(call, call.fact.operands[i], call.operand(i));
}

} // namespace devicetidy
