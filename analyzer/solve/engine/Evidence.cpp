#include "analyzer/solve/engine/Evidence.h"

#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {
namespace {

// Is it that of a tensor that a caller has passed, itself or in an object?
bool isGiven(const Placement &placement) {
  return isOutside(placement) && placement.role != SymbolRole::DeviceChoice &&
         placement.role != SymbolRole::Module && applies(placement.index, op::parameter);
}

// Is it where its object was before it moved to another device?
bool isFormer(const Placement &placement) { return placement.index && applies(placement.index, op::former); }

// Was the tensor, or what it was computed from, passed by a caller and moved here?
bool wasMovedHere(const Call &call, const Witness &witness) {
  const std::vector<Step> history = steps(call.machine.memory.historyOf(call.row, witness.use->tensor));
  return std::any_of(history.begin(), history.end(), [](const Step &step) { return step.wasGiven; });
}

bool holdsDevice(const Types &types, Name className) {
  const Type *type = types.program.type(className);
  return type && (std::any_of(type->fields.begin(), type->fields.end(),
                              [&](const Field &field) {
                                const TypeClass kind = types.classOf(field.type);
                                return kind == TypeClass::Device || kind == TypeClass::Options;
                              }) ||
                  std::any_of(type->bases.begin(), type->bases.end(),
                              [&](Name base) { return holdsDevice(types, base); }));
}

} // namespace

// A function under way asks for devices, its class chooses one, or it is a module in a program that moves
// modules.
bool isMeantForDevices(const Call &call) {
  const Machine &machine = call.machine;
  for (const Frame *frame = &call.frame; frame; frame = frame->caller) {
    const Function &function = frame->function;
    if (machine.usage.asksForDevice.count(function.id) || holdsDevice(machine.types, function.className) ||
        (machine.usage.movesModules && machine.types.isModule(function.className)))
      return true;
  }
  return false;
}

Verdict weighAccess(const Call &call, const Placement &memory) {
  const Machine &machine = call.machine;
  bool copies = false, choosesDevice = false;
  for (const Frame *frame = &call.frame; frame; frame = frame->caller) {
    copies |= machine.usage.copiesToHost.count(frame->function.id) != 0;
    choosesDevice |= holdsDevice(machine.types, frame->function.className);
  }
  const bool isModule = memory.kind == PlacementKind::Symbol && memory.role == SymbolRole::Module;
  if (copies || (isModule && choosesDevice))
    return Verdict::Likely;
  return choosesDevice ? Verdict::Latent : Verdict::Silent;
}

Verdict weigh(const Call &call, const Witness &a, const Witness &b) {
  const bool isOutsideA = isOutside(*a.placement), isOutsideB = isOutside(*b.placement);
  if ((isGiven(*a.placement) && wasMovedHere(call, b)) || (isGiven(*b.placement) && wasMovedHere(call, a)))
    return Verdict::Likely;
  if (isFormer(*a.placement) != isFormer(*b.placement))
    return Verdict::Likely;
  if (isOutsideA && isOutsideB)
    return Verdict::Open;
  const Placement &fixed = isOutsideA ? *b.placement : *a.placement;
  const Placement &open = isOutsideA ? *a.placement : *b.placement;
  const bool isModule = open.kind == PlacementKind::Symbol && open.role == SymbolRole::Module;
  // Pinned memory is on the host on purpose.
  const bool isStaged = call.machine.memory.mayBePinned(call.row, (isOutsideA ? b : a).use->tensor);
  if (fixed.kind == PlacementKind::Cpu && !isStaged && (isModule || isGiven(open)) && isMeantForDevices(call))
    return Verdict::Likely;
  return Verdict::Latent;
}

} // namespace devicetidy
