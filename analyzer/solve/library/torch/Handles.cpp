//===- Handles.cpp - streams, events, communicators ---===//
//
// A stream, an event or a communicator belongs to the GPU that was current when it was made (CUDA C++
// Programming Guide, "Stream and Event Behavior"): an event is recorded only on a stream of its GPU. As a
// value a handle is that device.
//
//===----------------------------------------------------------------------===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/library/torch/CurrentDevice.h"
#include "analyzer/solve/library/torch/RankDevices.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {
namespace {

Value currentHandle(const Call &call) {
  const Placement placement = Placement::cuda(call.row.currentDevice);
  return deviceValue(placement, call.machine.note(nullptr, StepKind::Created, call.fact.where,
                                                  call.fact.name.str(), placement.describe()));
}

// A new one, on the current GPU.
Outcomes makeHandle(Call &call) {
  noteHandle(call);
  return call.done(currentHandle(call));
}

// Of the GPU with an index, -1 or none for the current one.
Outcomes handleOf(Call &call) {
  const Value index = call.argCount() ? call.arg(0) : scalarValue(intTerm(-1));
  if (!is(index, ValueKind::Scalar))
    return call.done(unknownValue());
  const Term number = call.row.resolve(index->term);
  if (constantOf(number) == -1)
    return call.done(currentHandle(call));
  return call.done(deviceValue(Placement::cuda(number)));
}

// Two handles that must be of one GPU.
Outcomes requireSameHandles(Call &call) {
  const Value first = call.arg(0), second = call.arg(1);
  if (is(first, ValueKind::Device) && is(second, ValueKind::Device))
    requireSameGpu(call, first, second);
  return call.done(unknownValue());
}

} // namespace

Words handleWords() {
  return {{},
          {{"handle", makeHandle}, {"handle_of", handleOf}, {"requires_same_handles", requireSameHandles}},
          {}};
}

} // namespace devicetidy
