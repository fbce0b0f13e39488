//===- DeviceValues.cpp - devices as values of rows ---===//
//
// What a row asks of the arguments of any function, LibTorch's or the user's: where a value is, a tensor that
// is somewhere, what must be on one device.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/library/torch/Devices.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {
namespace {

// The device of the first argument; nothing when it is not known to have one.
std::optional<Placement> placementOf(const Call &call, std::size_t i) {
  const Value value = call.arg(i);
  std::optional<Placement> placement = deviceOf(call.machine.memory, call.row, value);
  if (placement)
    placement = call.row.resolve(*placement);
  return placement && placement->isKnown() ? placement : std::nullopt;
}

Outcomes isCuda(Call &call) {
  const std::optional<Placement> placement = placementOf(call, 0);
  return call.done(placement ? scalarValue(isCudaTerm(*placement)) : unknownValue());
}

Outcomes isCpu(Call &call) {
  const std::optional<Placement> placement = placementOf(call, 0);
  return call.done(placement ? scalarValue(sameDeviceTerm(*placement, Placement::cpu())) : unknownValue());
}

Outcomes sameDevice(Call &call) {
  const std::optional<Placement> a = deviceOf(call.machine.memory, call.row, call.arg(0)),
                                 b = deviceOf(call.machine.memory, call.row, call.arg(1));
  return call.done(a && b ? scalarValue(sameDeviceTerm(call.row.resolve(*a), call.row.resolve(*b)))
                          : unknownValue());
}

Outcomes negation(Call &call) {
  const Value condition = call.arg(0);
  return call.done(is(condition, ValueKind::Scalar) ? scalarValue(notTerm(condition->term)) : condition);
}

Outcomes deviceOfValue(Call &call) {
  const Value value = call.arg(0);
  const std::optional<Placement> device = deviceOf(call.machine.memory, call.row, value);
  return call.done(device ? deviceValue(*device, call.machine.memory.historyOf(call.row, value))
                          : unknownValue());
}

} // namespace

Words deviceValueWords() {
  return {{},
          {{"is_cuda", isCuda},
           {"is_cpu", isCpu},
           {"same_device", sameDevice},
           {"not", negation},
           {"device_of", deviceOfValue}},
          {}};
}

} // namespace devicetidy
