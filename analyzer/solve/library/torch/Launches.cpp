#include "analyzer/solve/library/torch/Launches.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/library/torch/CurrentDevice.h"
#include "analyzer/solve/library/torch/HostAccess.h"

namespace devicetidy {
namespace {

// The name of the kernel, or what the code calls it where it comes as a value.
std::string kernelName(const Call &call) {
  if (!call.fact.isIndirect)
    return std::string(lastPart(call.fact.name.view()));
  const Value kernel = call.operand(0);
  const Function *known =
      is(kernel, ValueKind::Function) ? call.machine.program.function(kernel->function) : nullptr;
  return known ? std::string(lastPart(known->name.view())) : call.fact.operands[0].text.str();
}

// What is given by value, with all that it holds; what pointers among it lead to is the host's.
void meetMemory(Call &call, const Operand &operand, const Value &value) {
  if (isTensorMemory(value))
    return requireCurrent(call, memoryUse(value, operand), kernelName(call));
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
