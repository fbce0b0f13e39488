//===- DeviceValues.cpp - devices as values of rows ---===//
//
// What a row asks of the arguments of any function, LibTorch's or the user's: where a value is, a tensor that
// is somewhere, what must be on one device.
//
//===----------------------------------------------------------------------===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/library/torch/CurrentDevice.h"
#include "analyzer/solve/library/torch/Devices.h"
#include "analyzer/solve/library/torch/HostAccess.h"
#include "analyzer/solve/library/torch/Modules.h"
#include "analyzer/solve/library/torch/RankDevices.h"
#include "analyzer/solve/library/torch/Tensors.h"
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

// The code asks where something is.
void noteAsked(const Call &call, const std::optional<Placement> &placement) {
  if (placement && placement->kind == PlacementKind::Symbol && placement->role == SymbolRole::Tensor)
    call.machine.asked.insert(placement->index);
}

Outcomes isCuda(Call &call) {
  const std::optional<Placement> placement = placementOf(call, 0);
  noteAsked(call, placement);
  return call.done(placement ? scalarValue(isCudaTerm(*placement)) : unknownValue());
}

Outcomes isCpu(Call &call) {
  const std::optional<Placement> placement = placementOf(call, 0);
  noteAsked(call, placement);
  return call.done(placement ? scalarValue(sameDeviceTerm(*placement, Placement::cpu())) : unknownValue());
}

Outcomes sameDevice(Call &call) {
  const std::optional<Placement> a = deviceOf(call.machine.memory, call.row, call.arg(0)),
                                 b = deviceOf(call.machine.memory, call.row, call.arg(1));
  noteAsked(call, a);
  noteAsked(call, b);
  return call.done(a && b ? scalarValue(sameDeviceTerm(call.row.resolve(*a), call.row.resolve(*b)))
                          : unknownValue());
}

Outcomes negation(Call &call) {
  const Value condition = call.arg(0);
  return call.done(is(condition, ValueKind::Scalar) ? scalarValue(notTerm(condition->term)) : condition);
}

Outcomes deviceOfValue(Call &call) {
  const Value given = call.arg(0);
  const Value value = isTensorMemory(given) ? tensorBehind(given) : given;
  const std::optional<Placement> device = deviceOf(call.machine.memory, call.row, value);
  if (device)
    return call.done(deviceValue(*device, call.machine.memory.historyOf(call.row, value)));
  const bool isDevice = call.machine.types.classOf(call.resultType()) == TypeClass::Device;
  return call.done(isDevice ? deviceValue(Placement::unknown()) : unknownValue());
}

Outcomes indexOfDevice(Call &call) {
  const std::optional<Placement> placement = placementOf(call, 0);
  noteAsked(call, placement);
  return call.done(placement ? indexValue(call, *placement) : unknownValue());
}

// A tensor made on the device: tensor(cpu), tensor(arg1).
Outcomes tensorOn(Call &call) {
  Machine &machine = call.machine;
  const std::optional<Placement> asked = placementOf(call, 0);
  if (!asked)
    return call.done(tensorValue(Placement::unknown(), unknownRank, nullptr));
  const Placement placement = machine.concrete(call.row, *asked);
  if (isAbsent(call.row, placement))
    return {};
  return call.done(tensorValue(
      placement, someRank,
      machine.note(nullptr, StepKind::Created, call.fact.where, call.fact.name.str(), placement.describe())));
}

// A tensor where the first one among the arguments is.
Outcomes tensorLike(Call &call) {
  Machine &machine = call.machine;
  const std::vector<TensorUse> uses = tensorUses(call, 0);
  if (uses.empty())
    return call.done(unknownValue());
  const Placement placement = machine.memory.placementOf(call.row, uses[0].tensor);
  return call.done(
      tensorValue(placement, uses[0].tensor->rank,
                  machine.note(machine.memory.historyOf(call.row, uses[0].tensor), StepKind::Inherited,
                               call.fact.where, uses[0].operand->text.str(), placement.describe())));
}

Machine::Requirement requirementOf(const Call &call, ConflictKind kind) {
  Machine::Requirement requirement;
  requirement.operation = call.fact.name.str();
  requirement.kind = kind;
  return requirement;
}

// All tensors among the arguments must be on one device.
Outcomes requireSameDevice(Call &call) {
  if (const std::vector<TensorUse> uses = tensorUses(call, 0); uses.size() > 1)
    call.machine.requireSame(call, uses, requirementOf(call, ConflictKind::Operation));
  return call.done(unknownValue());
}

// The tensors among the arguments, and those whose memory is.
std::vector<TensorUse> placedUses(Call &call) {
  std::vector<TensorUse> uses = tensorUses(call, 0);
  for (std::size_t i = call.first; i < call.fact.operands.size(); ++i)
    if (const Value value = call.operand(i); isTensorMemory(value))
      if (TensorUse use = memoryUse(value, call.fact.operands[i]); is(use.tensor, ValueKind::Tensor))
        uses.push_back(std::move(use));
  return uses;
}

void requireHost(Call &call, const TensorUse &use, bool isSure) {
  Machine::Requirement requirement = requirementOf(call, ConflictKind::HostAccess);
  requirement.isSure = isSure;
  const TensorUse host{tensorValue(Placement::cpu(), someRank, nullptr), nullptr, "the host"};
  call.machine.requireSame(call, {use, host}, requirement);
}

// Host code works on their memory; whether it does may depend on how it was built (`isSure`).
Outcomes requireHost(Call &call, bool isSure) {
  for (const TensorUse &use : placedUses(call))
    requireHost(call, use, isSure);
  return call.done(unknownValue());
}

Outcomes requireHost(Call &call) { return requireHost(call, true); }
Outcomes expectHost(Call &call) { return requireHost(call, false); }

Outcomes requireCurrent(Call &call) {
  const std::string work(lastPart(call.fact.name.view()));
  for (const TensorUse &use : placedUses(call))
    requireCurrent(call, use, work);
  for (std::size_t i = call.first; i < call.fact.operands.size(); ++i)
    requireCurrentHandle(call, i, work);
  return call.done(unknownValue());
}

// cudaMemcpy(to, from, size, kind): the kind says which of them is memory of a GPU (driver_types.h).
Outcomes copyMemory(Call &call) {
  enum Kind : std::int64_t { HostToDevice = 1, DeviceToHost, DeviceToDevice };
  const std::int64_t kind = call.row.numberOf(call.arg(3)).value_or(0);
  for (const bool isSource : {false, true}) {
    const std::size_t i = call.first + isSource;
    if (kind < HostToDevice || kind > DeviceToDevice || !isTensorMemory(call.operand(i)))
      continue;
    const TensorUse use = memoryUse(call.operand(i), call.fact.operands[i]);
    if (kind == DeviceToDevice || (kind == DeviceToHost) == isSource)
      requireGpu(call, use, std::string(lastPart(call.fact.name.view())));
    else if (is(use.tensor, ValueKind::Tensor))
      requireHost(call, use, true);
  }
  return call.done(unknownValue());
}

// cudaPointerGetAttributes(to, pointer): the memory of a tensor is that of its device. What it says of other
// pointers is decided outside.
Outcomes pointerAttributes(Call &call) {
  static const Name type("type"), device("device"), devicePointer("devicePointer");
  enum MemoryType : std::int64_t { Unregistered = 0, Device = 2 };
  const Value to = call.arg(0), pointer = call.arg(1);
  const Value tensor = isTensorMemory(pointer) ? tensorBehind(pointer) : unknownValue();
  const std::optional<Placement> placement = deviceOf(call.machine.memory, call.row, tensor);
  if (!placement || !placement->isKnown() || !is(to, ValueKind::Address))
    return call.done(unknownValue());
  Outcomes outcomes;
  for (const bool isDevice : {true, false}) {
    Row row = call.row;
    if (!row.assume(isCudaTerm(row.resolve(*placement)), isDevice))
      continue;
    Call in{call.machine, call.frame, row, call.fact, call.first};
    Memory &memory = call.machine.memory;
    memory.write(row, to->address.field(type), scalarValue(intTerm(isDevice ? Device : Unregistered)));
    memory.write(row, to->address.field(device),
                 isDevice ? indexValue(in, row.resolve(*placement)) : unknownValue());
    memory.write(row, to->address.field(devicePointer), isDevice ? pointer : nullValue());
    outcomes.push_back({std::move(row), scalarValue(intTerm(0))});
  }
  return outcomes;
}

Outcomes requireGpu(Call &call) {
  for (const TensorUse &use : placedUses(call))
    requireGpu(call, use, std::string(lastPart(call.fact.name.view())));
  return call.done(unknownValue());
}

Outcomes setCurrent(Call &call) {
  const Term before = call.row.currentDevice;
  makeCurrent(call, call.arg(0));
  meetSetDevice(call, before);
  return call.done(unknownValue());
}

Outcomes moveModuleTo(Call &call) {
  const std::optional<Placement> asked = placementOf(call, 1);
  const Address module = call.addressOf(0);
  if (!asked || !module.valid())
    return call.done(unknownValue());
  const Placement placement = call.machine.concrete(call.row, *asked);
  if (isAbsent(call.row, placement))
    return {};
  moveModule(call.machine, call.row, module, placement,
             call.machine.note(nullptr, StepKind::ModuleMoved, call.fact.where,
                               call.fact.operands[0].text.str(), placement.describe()));
  return call.done(unknownValue());
}

} // namespace

Words deviceValueWords() {
  return {{},
          {{"tensor", tensorOn},
           {"like", tensorLike},
           {"index_of", indexOfDevice},
           {"requires_same", requireSameDevice},
           {"requires_host", requireHost},
           {"expects_host", expectHost},
           {"requires_current", requireCurrent},
           {"requires_gpu", requireGpu},
           {"copy_memory", copyMemory},
           {"pointer_attributes", pointerAttributes},
           {"set_current", setCurrent},
           {"move_module", moveModuleTo},
           {"is_cuda", isCuda},
           {"is_cpu", isCpu},
           {"same_device", sameDevice},
           {"not", negation},
           {"device_of", deviceOfValue}},
          {}};
}

} // namespace devicetidy
