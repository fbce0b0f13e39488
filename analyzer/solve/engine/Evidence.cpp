#include "analyzer/solve/engine/Evidence.h"

#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {
namespace {

// Is it that of a tensor that the caller of this entry has passed, itself or in an object?
bool isGiven(const Call &call, const Placement &placement) {
  return isOutside(placement) && placement.role != SymbolRole::DeviceChoice &&
         placement.role != SymbolRole::Module && !isStateOutside(placement) &&
         callThatWasGiven(placement) == call.machine.entryCall;
}

// Has the code put something else into the object that holds the tensor? Then it keeps its state there.
bool isOfWrittenObject(const Call &call, const Placement &placement) {
  bool isWritten = false;
  call.row.store.forEach(RootKind::Outside, [&](RootId root, const Value &) {
    const Term origin = call.machine.memory.info(root).origin;
    isWritten |=
        origin != placement.index && applies(origin, op::parameter) && contains(placement.index, origin);
  });
  return isWritten;
}

// Has a caller passed it to an earlier call, whose object kept it as it was, though it moves others?
bool isKept(const Call &call, const Placement &placement) {
  return call.machine.objectMovesGiven && placement.kind == PlacementKind::Symbol &&
         placement.role == SymbolRole::Tensor && !isStateOutside(placement) &&
         !callThatWasGiven(placement).empty() && callThatWasGiven(placement) != call.machine.entryCall;
}

bool isChoice(const Placement &placement) {
  return placement.kind == PlacementKind::Symbol && placement.role == SymbolRole::DeviceChoice;
}

// Is it part of the object at hand, of which the entry knows a part only?
bool isPartial(const Call &call, const Placement &placement) {
  return call.machine.isPartial && placement.index && applies(placement.index, op::self);
}

// Is it a module that the program made and did not move, but may have handed out?
bool isReleased(const Placement &module) {
  return module.index->kind == TermKind::Apply && module.index->name == op::deviceOfParameter &&
         module.index->args.size() == 2;
}

// Was the tensor, or what it was computed from, passed by a caller and moved here?
bool wasMovedHere(const Call &call, const Witness &witness) {
  const std::vector<Step> history = steps(call.machine.memory.historyOf(call.row, witness.use->tensor));
  return std::any_of(history.begin(), history.end(), [&](const Step &step) {
    return !step.givenTo.empty() && step.givenTo == call.machine.entryCall;
  });
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
  if (isPartial(call, memory))
    return Verdict::Silent;
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

Verdict weigh(const Call &call, Verdict verdict, const Witness &a, const Witness &b) {
  const bool isOutsideA = isOutside(*a.placement), isOutsideB = isOutside(*b.placement);
  if (isPartial(call, *a.placement) || isPartial(call, *b.placement))
    return Verdict::Open;
  const std::set<Term> *left = call.machine.devicesLeft;
  auto isLeftFor = [&](const Placement &now, const Placement &other) {
    return (now.kind == PlacementKind::Cpu || isSaved(now)) && left && left->count(originOf(other));
  };
  if (isLeftFor(*a.placement, *b.placement) || isLeftFor(*b.placement, *a.placement))
    return Verdict::Likely;
  if (verdict == Verdict::Likely)
    return verdict;
  if ((isGiven(call, *a.placement) && wasMovedHere(call, b)) ||
      (isGiven(call, *b.placement) && wasMovedHere(call, a)))
    return Verdict::Likely;
  if ((isKept(call, *a.placement) && isChoice(*b.placement)) ||
      (isKept(call, *b.placement) && isChoice(*a.placement)))
    return Verdict::Likely;
  if (isFormer(*a.placement) != isFormer(*b.placement))
    return Verdict::Likely;
  if (isOutsideA && isOutsideB)
    return Verdict::Open;
  const Placement &fixed = isOutsideA ? *b.placement : *a.placement;
  const Placement &open = isOutsideA ? *a.placement : *b.placement;
  if (isStateOutside(open))
    return Verdict::Open;
  const bool isModule =
      open.kind == PlacementKind::Symbol && open.role == SymbolRole::Module && !isReleased(open);
  // Pinned memory is on the host on purpose.
  const bool isStaged = call.machine.memory.mayBePinned(call.row, (isOutsideA ? b : a).use->tensor);
  const bool isMeant = isMeantForDevices(call) || wasMovedHere(call, isOutsideA ? a : b);
  if (fixed.kind == PlacementKind::Cpu && !isStaged && isMeant &&
      (isModule || (isGiven(call, open) && !isOfWrittenObject(call, open))))
    return Verdict::Likely;
  return Verdict::Latent;
}

} // namespace devicetidy
