//===- Kernels.cpp - functions registered with the dispatcher ---===//
//
// TORCH_LIBRARY_IMPL(ns, CUDA, m) { m.impl("f", f); }: the dispatcher calls `f` for CUDA tensors only. With
// several tensors CUDA wins over the CPU, so one that is registered for the CPU gets CPU tensors alone; of
// one that is registered for CUDA the first tensor is taken to be there, as the dispatcher's own device guard
// does. Source: torch/library.h, aten/src/ATen/core/dispatch.
//
//===----------------------------------------------------------------------===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/torch/Words.h"

#include <algorithm>
#include <cctype>

namespace devicetidy {
namespace {

// The dispatch key of a function that TORCH_LIBRARY_IMPL makes: TORCH_LIBRARY_IMPL_init_NAMESPACE_KEY_NUMBER.
// library.h promises the name to tools; the macro hides the key itself.
std::string_view keyOfBlock(std::string_view name) {
  if (!startsWith(name, "TORCH_LIBRARY_IMPL_init_"))
    return {};
  auto isDigit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)); };
  const std::size_t number = name.rfind('_');
  if (!std::all_of(name.begin() + static_cast<std::ptrdiff_t>(number) + 1, name.end(), isDigit))
    return {};
  name = name.substr(0, number);
  return name.substr(name.rfind('_') + 1);
}

// A function with a dispatch key of its own, as torch::dispatch(key, f) makes it.
const Name keyed("torch::CppFunction"), keyField("key"), functionField("function");

bool isKeyed(const Value &callable) { return is(callable, ValueKind::Record) && callable->type == keyed; }

// impl(name, f) is for the device of its block; impl(name, kCUDA, f) and impl(name, dispatch(kCUDA, f)) for
// their own.
Placement deviceOfKernels(const Call &call, bool hasOwn) {
  const Value own = hasOwn ? call.arg(1) : unknownValue(), given = call.arg(1);
  const Value key = isKeyed(given) ? given->fields.at(keyField) : own;
  if (is(key, ValueKind::Device))
    return call.row.resolve(key->placement);
  std::string name(isKeyed(given) ? textOf(key->term)->view()
                   : hasOwn       ? lastPart(call.fact.operands[call.first + 1].text.view())
                                  : keyOfBlock(lastPart(call.frame.function.name.view())));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return parseDevice(name).value_or(Placement::unknown());
}

// What the dispatcher hands over for `parameter`: a tensor of `device`, or anything.
Argument dispatched(const Call &call, const Function &kernel, std::size_t i, const Placement &device) {
  const Variable &parameter = kernel.locals[i];
  const Term origin = applyTerm(op::dispatched, {textTerm(kernel.id), intTerm(static_cast<std::int64_t>(i))});
  if (!device.isKnown())
    return {call.machine.memory.symbolic(parameter.type, origin, parameter.name), {}, parameter.name};
  Placement placement = device;
  if (placement.kind == PlacementKind::Cuda)
    placement.index = indexOf(origin);
  const History history = call.machine.note(nullptr, StepKind::Dispatched, parameter.where,
                                            parameter.name.str(), device.describe());
  return {call.machine.memory.filled(parameter.type, placement, unknownRank, history), {}, parameter.name};
}

std::optional<Outcomes> registerKernel(Call &call, const models::Effect &) {
  if (call.argCount() < 2)
    return std::nullopt;
  // Newer versions take a last argument that says whether to register at all.
  const bool hasOwn = call.argCount() > 2 && !is(call.arg(1), ValueKind::Function) && !isKeyed(call.arg(1));
  const Value given = call.arg(hasOwn ? 2 : 1);
  const Value callable = isKeyed(given) ? given->fields.at(functionField) : given;
  const Placement device = deviceOfKernels(call, hasOwn);
  const Function *kernel =
      is(callable, ValueKind::Function) ? call.machine.program.function(callable->function) : nullptr;
  if (kernel && kernel->hasBody && device.isKnown()) {
    std::vector<Argument> args;
    bool isFirst = true;
    for (std::size_t i = 0; i < kernel->paramCount; ++i) {
      const bool holds = call.machine.types.holdsTensors(kernel->locals[i].type);
      const bool isThere =
          holds && (device.kind == PlacementKind::Cpu ||
                    (isFirst && call.machine.types.classOf(kernel->locals[i].type) == TypeClass::Tensor));
      args.push_back(dispatched(call, *kernel, i, isThere ? device : Placement::unknown()));
      isFirst &= !holds;
    }
    callValue(call, call.row, callable, args);
  }
  return call.done(addressValue(call.objectAddress()));
}

// dispatch(key, f)
Outcomes keyedFunction(Call &call) {
  const Value key = call.arg(0);
  return call.done(recordValue(
      keyed, {{keyField, is(key, ValueKind::Device)
                             ? key
                             : scalarValue(textTerm(lastPart(call.fact.operands[call.first].text.view())))},
              {functionField, call.arg(1)}}));
}

} // namespace

Words kernelWords() {
  return {{{"register_kernel", registerKernel}}, {{"keyed_function", keyedFunction}}, {}};
}

} // namespace devicetidy
