//===- Archives.cpp - what is saved and loaded --------------------===//
//
// Without a device of its own a load puts tensors where they were when they were saved. That is known where
// the same stream, archive or file was written before on the row: a copy through a stream, a best model that
// is read back.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/Archives.h"

#include "analyzer/solve/Devices.h"
#include "analyzer/solve/Modules.h"
#include "analyzer/solve/NameParts.h"
#include "analyzer/solve/OptimizerState.h"

namespace devicetidy {
namespace {

const Name archiveDevice("@device");

// Where it is kept which device the tensors are for that the archive, stream or file of operand `i` holds.
Address deviceSlot(Call &call, std::size_t i) {
  if (i >= call.fact.operands.size())
    return {};
  const Value archive = call.operand(i);
  if (is(archive, ValueKind::Scalar)) {
    const std::optional<Name> path = textOf(call.row.resolve(archive->term));
    return path ? Address{call.machine.memory.global(Name("archive " + path->str()), "c10::Device", {}),
                          nullptr}
                : Address();
  }
  const Address where = call.addressOf(i);
  return where.valid() ? where.field(archiveDevice) : Address();
}

Placement kept(const Call &call, const Address &slot) {
  const Value device = slot.valid() ? call.machine.memory.read(call.row, slot) : unknownValue();
  return is(device, ValueKind::Device) ? device->placement : Placement::unknown();
}

void keep(Call &call, const Address &slot, const Placement &placement) {
  if (slot.valid())
    call.machine.memory.write(call.row, slot, deviceValue(placement));
}

// Streams and archives hold what was written before as well; a file is written anew.
void add(Call &call, std::size_t archive, const Placement &placement) {
  const Address slot = deviceSlot(call, archive);
  const Value before = slot.valid() ? call.machine.memory.read(call.row, slot) : unknownValue();
  const bool isFile = is(call.operand(archive), ValueKind::Scalar);
  const bool isOther = !isFile && is(before, ValueKind::Device) && before->placement != placement;
  keep(call, slot, isOther ? Placement::unknown() : placement);
}

// The device operand `i` is on, a module or a tensor; unknown when it is on several.
Placement savedDevice(const Call &call, std::size_t i) {
  const Machine &machine = call.machine;
  const Value value = call.operand(i);
  if (isOptimizer(value))
    return stateDevice(call, value);
  const Address module = moduleOf(call, value, call.addressOf(i));
  if (module.valid() && !is(value, ValueKind::Tensor))
    return modulePlacement(machine, call.row, module);
  std::vector<Value> tensors;
  machine.collectTensors(call.row, value, tensors);
  return commonPlacement(machine, call.row, tensors);
}

// The device a load is given, else the one that was saved.
Placement loadedDevice(Call &call, std::size_t archive) {
  for (std::size_t i = archive + 1; i < call.fact.operands.size(); ++i) {
    const Value value = call.operand(i);
    if (is(value, ValueKind::Device))
      return call.machine.concrete(call.row, value->placement);
    if (!is(value, ValueKind::Null)) // an optional that may hold one
      return Placement::unknown();
  }
  return kept(call, deviceSlot(call, archive));
}

History loaded(const Call &call, std::size_t i, const Placement &placement) {
  return call.machine.note(nullptr, StepKind::Loaded, call.fact.where,
                           i < call.fact.operands.size() ? call.fact.operands[i].text.str() : "",
                           placement.describe());
}

// torch::load(x, archive[, device]).
Outcomes load(Call &call) {
  Machine &machine = call.machine;
  const Placement placement = loadedDevice(call, 1);
  if (Machine::isAbsent(call.row, placement))
    return {};
  const History history = loaded(call, 0, placement);
  const Address target = call.addressOf(0);
  const Value held = call.operand(0);
  const Name type = call.fact.operands.empty() ? Name() : call.fact.operands[0].type;
  if (isOptimizer(held))
    loadState(call, target, placement, history);
  else if (is(held, ValueKind::Address))
    moveModule(machine, call.row, held->address, placement, history);
  else if (is(held, ValueKind::Record) && machine.types.isModule(held->type))
    moveModule(machine, call.row, target, placement, history);
  else if (target.valid() && machine.types.classOf(type) == TypeClass::Tensor)
    machine.memory.write(call.row, target, tensorValue(placement, someRank, history));
  else if (target.valid() && machine.types.classOf(type) == TypeClass::List)
    machine.memory.write(call.row, target, summaryList(type, {tensorValue(placement, someRank, history)}));
  return call.done(unknownValue());
}

// load(archive) of a module or optimizer.
Outcomes loadObject(Call &call) {
  const Placement placement = kept(call, deviceSlot(call, call.first));
  if (isOptimizer(call.object()))
    loadState(call, call.objectAddress(), placement, loaded(call, 0, placement));
  else if (call.objectAddress().valid())
    moveModule(call.machine, call.row, call.objectAddress(), placement, loaded(call, 0, placement));
  return call.done(unknownValue());
}

// load_from, read and try_read of an InputArchive.
Outcomes readArchive(Call &call) {
  Machine &machine = call.machine;
  if (lastPart(call.fact.name.view()) == "load_from") {
    const Placement placement = loadedDevice(call, call.first);
    if (Machine::isAbsent(call.row, placement))
      return {};
    keep(call, deviceSlot(call, 0), placement);
    return call.done(unknownValue());
  }
  const std::size_t into = call.first + 1;
  const Address target = call.argCount() > 1 ? call.addressOf(into) : Address();
  if (target.valid() && machine.types.classOf(call.fact.operands[into].type) == TypeClass::Tensor) {
    const Placement placement = kept(call, deviceSlot(call, 0));
    machine.memory.write(call.row, target,
                         tensorValue(placement, unknownRank, loaded(call, into, placement)));
  }
  return call.done(machine.unknownResult(call));
}

// torch::save(x, archive), save(archive) of a module, write and save_to of an OutputArchive.
void save(Call &call) {
  const std::string_view method = lastPart(call.fact.name.view());
  if (method == "save_to" && call.argCount())
    return add(call, call.first, kept(call, deviceSlot(call, 0)));
  if (method == "write" && call.argCount() > 1)
    return add(call, 0, savedDevice(call, call.first + 1));
  if (method == "save" && call.fact.operands.size() > 1)
    add(call, 1, savedDevice(call, 0));
}

} // namespace

void forgetSaved(Call &call, std::size_t i) {
  const std::string_view method = lastPart(call.fact.name.view());
  if (call.fact.operands.size() == 1 ||
      isOneOf(method, {"seekg", "seekp", "clear", "setstate", "exceptions"}))
    return;
  const Address where = call.addressOf(i);
  const Value stream = call.machine.memory.read(call.row, where);
  if (is(stream, ValueKind::Record) && stream->fields.count(archiveDevice))
    keep(call, where.field(archiveDevice), Placement::unknown());
}

std::optional<Outcomes> modelArchives(Call &call, std::string_view role) {
  if (role == "save") {
    save(call);
    return call.done(call.machine.unknownResult(call));
  }
  if (role != "load_module" && role != "load_tensor")
    return std::nullopt;
  if (!call.fact.hasObject)
    return load(call);
  return startsWith(call.fact.name.view(), "torch::serialize::") ? readArchive(call) : loadObject(call);
}

} // namespace devicetidy
