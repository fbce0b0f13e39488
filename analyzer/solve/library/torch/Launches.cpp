#include "analyzer/solve/library/torch/Launches.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/solve/library/torch/CurrentDevice.h"
#include "analyzer/solve/library/torch/HostAccess.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {
namespace {

// A kernel that comes as a value: its name, or what the code calls it.
std::string nameOf(const Call &call, std::size_t operand) {
  const Value kernel = call.operand(operand);
  const Function *known =
      is(kernel, ValueKind::Function) ? call.machine.program.function(kernel->function) : nullptr;
  return known ? std::string(lastPart(known->name.view())) : call.fact.operands[operand].text.str();
}

/// What a call runs on the current GPU.
struct Work {
  Call &call;
  std::string name;
  bool isSeen = true; ///< else it is taken to
};

// What is given by value, with all that it holds; what pointers among it lead to is the host's.
void meetMemory(const Work &work, const Operand &operand, const Value &value) {
  if (isTensorMemory(value))
    return requireCurrent(work.call, memoryUse(value, operand), work.name, work.isSeen);
  if (is(value, ValueKind::Record)) {
    for (const auto &[name, field] : value->fields)
      meetMemory(work, operand, field);
  } else if (is(value, ValueKind::List)) {
    for (const auto *list : {&value->elements, &value->summary})
      for (const Value &element : *list)
        meetMemory(work, operand, element);
  } else if (is(value, ValueKind::Function)) { // the kernel calls it, and nobody on the host
    for (const auto &[name, captured] : value->fields)
      meetMemory(work, operand, captured);
    Machine &machine = work.call.machine;
    if (const Function *const body = machine.program.function(value->function)) {
      machine.entered.insert(body);
      machine.enteredWhole.insert(body);
    }
  }
}

void meetArguments(const Work &work, std::size_t first) {
  for (std::size_t i = first; i < work.call.fact.operands.size(); ++i) {
    meetMemory(work, work.call.fact.operands[i], work.call.operand(i));
    requireCurrentHandle(work.call, i, work.name);
  }
}

// launch_packed(kernel, arguments): an array of the addresses of what the kernel is given.
Outcomes launchPacked(Call &call) {
  const Memory &memory = call.machine.memory;
  const Value first = asPosition(memory, call.row, call.arg(1));
  if (!isPosition(first))
    return call.done(unknownValue());
  const Value list = memory.read(call.row, sequenceOf(first->address));
  const Work work{call, nameOf(call, call.first)};
  if (is(list, ValueKind::List))
    for (const Value &element : list->elements)
      if (is(element, ValueKind::Address))
        meetMemory(work, call.fact.operands[call.first + 1], memory.read(call.row, element->address));
  return call.done(unknownValue());
}

// launch(kernel, arguments...)
Outcomes launch(Call &call) {
  meetArguments({call, nameOf(call, call.first)}, call.first + 1);
  return call.done(unknownValue());
}

// works_on_gpu(args): kernels that work on what it is given.
Outcomes workOnGpu(Call &call) {
  meetArguments({call, std::string(lastPart(call.fact.name.view()))}, call.first);
  return call.done(unknownValue());
}

// works_on_stream(args): the same, where a stream or a policy of a device is among it.
Outcomes workOnStream(Call &call) {
  return call.machine.types.takesStream(call.fact) ? workOnGpu(call) : call.done(unknownValue());
}

// launch_configuration(args): what stands in `<<< >>>`, the stream among it.
Outcomes configureLaunch(Call &call) {
  for (std::size_t i = call.first; i < call.fact.operands.size(); ++i)
    requireCurrentHandle(call, i, "<<<>>>");
  return call.done(unknownValue());
}

// The code has found one of the tensors that its caller passed on a GPU, has never asked another one, and
// hands over the memory of both.
void meetDispatch(Call &call, const std::string &name) {
  Machine &machine = call.machine;
  std::vector<TensorUse> found, unasked;
  for (std::size_t i = call.first; i < call.fact.operands.size(); ++i) {
    const Value pointer = call.operand(i);
    if (!isTensorMemory(pointer) || !is(tensorBehind(pointer), ValueKind::Tensor))
      continue;
    const TensorUse use = memoryUse(pointer, call.fact.operands[i]);
    const Placement placement = call.row.resolve(machine.memory.placementOf(call.row, use.tensor));
    if (!isOutside(placement) || callThatWasGiven(placement) != machine.entryCall ||
        machine.memory.mayBePinned(call.row, use.tensor))
      continue;
    if (placement.kind == PlacementKind::Cuda)
      found.push_back(use);
    else if (placement.role == SymbolRole::Tensor && !isStateOutside(placement) &&
             !machine.asked.count(placement.index))
      unasked.push_back(use);
  }
  if (found.empty() || unasked.empty())
    return;
  Machine::Requirement requirement{name, ConflictKind::Launch};
  requirement.isOpen = true;
  machine.requireSame(call, {unasked.front(), found.front()}, requirement);
}

} // namespace

void meetLaunch(Call &call) {
  const bool isValue = call.fact.isIndirect;
  meetArguments({call, isValue ? nameOf(call, 0) : std::string(lastPart(call.fact.name.view()))}, call.first);
}

void meetUnseen(Call &call) {
  const std::string name = overloadedBy(call.fact.name).empty() ? std::string(lastPart(call.fact.name.view()))
                                                                : nameOf(call, 0); // of a callable
  if (call.machine.types.takesStream(call.fact))
    meetArguments({call, name, false}, call.first);
  else
    meetDispatch(call, name);
}

Words launchWords() {
  return {{},
          {{"launch_packed", launchPacked},
           {"launch", launch},
           {"works_on_gpu", workOnGpu},
           {"works_on_stream", workOnStream},
           {"launch_configuration", configureLaunch}},
          {}};
}

} // namespace devicetidy
