//===- Devices.cpp - c10::Device, TensorOptions, guards -------------===//
#include "analyzer/solve/library/torch/Devices.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/torch/CurrentDevice.h"
#include "analyzer/solve/library/torch/RankDevices.h"
#include "analyzer/solve/library/torch/Words.h"

#include <algorithm>

namespace devicetidy {
namespace {

using models::Effect;

std::vector<Value> valuesOf(const Making &making) {
  std::vector<Value> values;
  for (const Argument &arg : making.args)
    values.push_back(arg.value);
  return values;
}

// Why a device value is the one it is, for whoever asks of the variable; stories of tensors do without.
History naming(const Call &call, const History &before, const Placement &device) {
  return before || !device.isKnown()
             ? before
             : call.machine.note(nullptr, StepKind::Named, call.fact.where, {}, device.describe());
}

// c10::Device(type[, index]) or a device string; `indexText` is how the index is written.
Value makeDevice(Call &call, const std::vector<Value> &args, Name indexText) {
  Machine &machine = call.machine;
  if (args.empty())
    return deviceValue(Placement::cpu());
  const Value &first = args[0];
  std::optional<Placement> device = deviceOf(machine.memory, call.row, first);
  if (!device && is(first, ValueKind::Unknown)) {
    // An unknown name or number (a command line, a configuration, an array of another language) chooses the
    // device.
    const std::size_t named = call.fact.kind == FactKind::Construct ? 1 : 0;
    const TypeClass given = call.fact.operands.size() > named
                                ? machine.types.classOf(call.fact.operands[named].type)
                                : TypeClass::Other;
    const bool isChoice =
        given == TypeClass::String || given == TypeClass::Scalar || given == TypeClass::Device;
    return isChoice ? deviceValue(Placement::symbol(SymbolRole::DeviceChoice, machine.freshScalar(call),
                                                    "a device chosen at run time"),
                                  machine.note(nullptr, StepKind::Chosen, call.fact.where,
                                               call.fact.operands[named].text.str(), {}))
                    : unknownValue();
  }
  if (!device)
    return deviceValue(Placement::unknown());
  if (device->kind == PlacementKind::Cuda && args.size() > 1) {
    const Value &index = args[1];
    if (is(index, ValueKind::Scalar)) {
      Term term = call.row.resolve(index->term);
      meetIndex(call, term);
      if (constantOf(term) != -1)
        device->index = term;
    } else if (!is(index, ValueKind::Null)) {
      device->index = machine.freshScalar(call);
    }
    device->text = indexText;
  }
  return deviceValue(*device, naming(call, first->history, *device));
}

std::vector<Value> operandsFrom(const Call &call, std::size_t from) {
  std::vector<Value> values;
  for (std::size_t i = from; i < call.fact.operands.size(); ++i)
    values.push_back(call.operand(i));
  return values;
}

// How the index is written, without a cast around it.
Name indexText(const Call &call, std::size_t from) {
  if (call.fact.operands.size() <= from + 1)
    return {};
  std::string_view text = call.fact.operands[from + 1].text.view();
  const std::size_t open = text.find(">(");
  if (text.substr(0, 11) == "static_cast" && open != std::string_view::npos && text.back() == ')')
    text = text.substr(open + 2, text.size() - open - 3);
  return Name(text);
}

Value makeOptions(Call &call, const std::vector<Value> &args) {
  for (const Value &arg : args) {
    if (is(arg, ValueKind::Options))
      return arg;
    if (is(arg, ValueKind::Unknown) && args.size() == 1)
      return arg;
    if (is(arg, ValueKind::Scalar) && !textOf(arg->term))
      continue;
    if (std::optional<Placement> device = deviceOf(call.machine.memory, call.row, arg))
      return optionsValue(&*device, naming(call, arg->history, *device));
  }
  return optionsValue(nullptr);
}

std::optional<Outcomes> deviceOfOptions(Call &call, const Effect &) {
  const Value options = call.object();
  return call.done(
      is(options, ValueKind::Options)
          ? deviceValue(options->hasDevice ? options->placement : Placement::cpu(), options->history)
          : unknownValue());
}

// device(...) sets the device; whether the memory is to be pinned stays.
std::optional<Outcomes> withDevice(Call &call, const Effect &) {
  const Value made =
      makeOptions(call, {makeDevice(call, operandsFrom(call, call.first), indexText(call, call.first))});
  if (!call.fact.hasObject || !call.object()->pinned || !is(made, ValueKind::Options))
    return call.done(made);
  return call.done(optionsValue(made->hasDevice ? &made->placement : nullptr, made->history, true));
}

std::optional<Outcomes> withDeviceIndex(Call &call, const Effect &) {
  const Value index = call.arg(0);
  if (!is(index, ValueKind::Scalar))
    return call.done(unknownValue());
  meetIndex(call, index->term);
  Placement placement = Placement::cuda(call.row.resolve(index->term));
  placement.text = call.fact.operands[call.first].text;
  return call.done(optionsValue(&placement));
}

std::optional<Outcomes> withPinnedMemory(Call &call, const Effect &) {
  const Value options = call.object();
  if (!is(options, ValueKind::Options))
    return call.done(call.machine.unknownResult(call));
  return call.done(optionsValue(options->hasDevice ? &options->placement : nullptr, options->history, true));
}

std::optional<Outcomes> hasDevice(Call &call, const Effect &) {
  const Value options = call.object();
  return call.done(is(options, ValueKind::Options) ? scalarValue(intTerm(options->hasDevice))
                                                   : call.machine.unknownResult(call));
}

std::optional<Outcomes> mergeOptions(Call &call, const Effect &) {
  const Value options = call.object(), other = call.argCount() ? call.arg(0) : options;
  return call.done(is(other, ValueKind::Options) && other->hasDevice ? other : options);
}

// What sets nothing that names a device: the options as they were.
std::optional<Outcomes> keepOptions(Call &call, const Effect &) {
  const bool isBuilder = call.machine.types.classOf(call.resultType()) == TypeClass::Options;
  return call.done(isBuilder ? call.object() : call.machine.unknownResult(call));
}

std::optional<Outcomes> plainOptions(Call &call, const Effect &) { return call.done(optionsValue(nullptr)); }

// A text that names a device is one.
std::optional<Outcomes> deviceText(Call &call, const Effect &) {
  const Value object = call.object();
  const std::optional<Placement> device = deviceOf(call.machine.memory, call.row, object);
  if (!device)
    return call.done(call.machine.unknownResult(call));
  const Placement placement = call.row.resolve(*device);
  const bool isText = placement.kind == PlacementKind::Cpu ||
                      (placement.kind == PlacementKind::Cuda && constantOf(placement.index));
  return call.done(isText ? scalarValue(textTerm(Name(placement.describe())))
                          : deviceValue(placement, object->history));
}

std::optional<Outcomes> deviceTypeOf(Call &call, const Effect &) {
  const Value object = call.object();
  const std::optional<Placement> device = deviceOf(call.machine.memory, call.row, object);
  if (!device)
    return call.done(call.machine.unknownResult(call));
  Placement placement = call.row.resolve(*device);
  if (placement.kind == PlacementKind::Cuda)
    placement.index = currentCudaIndex();
  return call.done(deviceValue(placement, object->history));
}

// One chosen outside may be CUDA's without an index; of a tensor's device -1 says that it is the CPU.
std::optional<Outcomes> deviceIndex(Call &call, const Effect &) {
  const std::optional<Placement> device = deviceOf(call.machine.memory, call.row, call.object());
  const Placement placement = device ? call.row.resolve(*device) : Placement::unknown();
  const bool isChosen = placement.kind == PlacementKind::Symbol && placement.role != SymbolRole::Tensor;
  return call.done(device && !isChosen ? indexValue(call, placement) : call.machine.unknownResult(call));
}

std::optional<Outcomes> setDeviceIndex(Call &call, const Effect &) {
  const std::optional<Placement> device = deviceOf(call.machine.memory, call.row, call.object());
  Placement placement = device ? call.row.resolve(*device) : Placement::unknown();
  if (placement.kind == PlacementKind::Cuda && is(call.arg(0), ValueKind::Scalar)) {
    placement.index = call.arg(0)->term;
    call.machine.memory.write(call.row, call.objectAddress(), deviceValue(placement));
  }
  return call.done(call.machine.unknownResult(call));
}

} // namespace

void makeCurrent(Call &call, const Value &device) {
  Term index = nullptr;
  if (is(device, ValueKind::Scalar) && !textOf(call.row.resolve(device->term))) {
    index = call.row.resolve(device->term);
    meetIndex(call, index);
  } else if (std::optional<Placement> placement = deviceOf(call.machine.memory, call.row, device)) {
    Placement resolved = call.machine.concrete(call.row, *placement);
    if (resolved.kind == PlacementKind::Cuda)
      index = resolved.index;
    else if (resolved.kind == PlacementKind::Symbol)
      index = indexOf(resolved.index);
    else
      return;
  } else {
    index = call.machine.freshScalar(call);
  }
  call.row.currentDevice = index;
}

Value indexValue(Call &call, const Placement &placement) {
  switch (placement.kind) {
  case PlacementKind::Cpu:
    return scalarValue(intTerm(-1));
  case PlacementKind::Cuda:
    if (!constantOf(placement.index))
      call.row.assume(applyTerm(op::less, {intTerm(-1), placement.index}), 1);
    return scalarValue(placement.index);
  case PlacementKind::Symbol:
    return scalarValue(call.row.resolve(indexOf(placement.index)));
  default:
    return call.machine.unknownResult(call);
  }
}

std::optional<Value> optionsArgument(const Call &call, std::size_t from) {
  for (std::size_t i = from; i < call.fact.operands.size(); ++i) {
    Value value = call.operand(i);
    const TypeClass type = call.machine.types.classOf(call.fact.operands[i].type);
    if (is(value, ValueKind::Options))
      return value;
    if (is(value, ValueKind::Device))
      return optionsValue(&value->placement, value->history);
    // Unknown options may name any device.
    if (is(value, ValueKind::Unknown) && (type == TypeClass::Options || type == TypeClass::Device))
      return value;
  }
  return std::nullopt;
}

namespace {

std::optional<Outcomes> isAvailable(Call &call, const Effect &) {
  return call.done(scalarValue(call.row.resolve(availableTerm())));
}

std::optional<Outcomes> deviceCount(Call &call, const Effect &) {
  return call.done(scalarValue(call.row.resolve(countTerm())));
}

// The rank: a device index made from it differs from process to process.
std::optional<Outcomes> rank(Call &call, const Effect &) {
  return call.done(scalarValue(applyTerm(op::rank, {textTerm(call.fact.name)})));
}

std::optional<Outcomes> environmentVariable(Call &call, const Effect &) {
  const Value name = call.arg(0);
  const auto text = is(name, ValueKind::Scalar) ? textOf(call.row.resolve(name->term)) : std::nullopt;
  if (!text || !models::hasRole(text->view(), "rank"))
    return std::nullopt;
  noteVariable(call, *text);
  return call.done(scalarValue(applyTerm(op::rank, {textTerm(*text)})));
}

std::optional<Outcomes> setEnvironmentVariable(Call &call, const Effect &) {
  const Value name = call.arg(0);
  if (const auto text = is(name, ValueKind::Scalar) ? textOf(call.row.resolve(name->term)) : std::nullopt)
    noteVisibleDevices(call, *text);
  return std::nullopt;
}

std::optional<Outcomes> currentDevice(Call &call, const Effect &) {
  return call.done(scalarValue(call.row.currentDevice));
}

std::optional<Outcomes> makeDeviceObject(const Making &making, const Effect &) {
  return making.done(makeDevice(making.call, valuesOf(making), indexText(making.call, 1)));
}

std::optional<Outcomes> makeOptionsObject(const Making &making, const Effect &) {
  static const Name dtype("caffe2::TypeMeta");
  const std::vector<Operand> &operands = making.call.fact.operands;
  return making.done(!operands.empty() && operands.back().type == dtype
                         ? optionsValue(nullptr)
                         : makeOptions(making.call, valuesOf(making)));
}

bool isOfHost(const Call &call, const Value &device) {
  const std::optional<Placement> placement = deviceOf(call.machine.memory, call.row, device);
  return placement && call.machine.concrete(call.row, *placement).kind == PlacementKind::Cpu;
}

// A guard keeps the device that was current before it; its end restores it (Machine::endGuards). One for GPUs
// alone has no use for the host.
std::optional<Outcomes> makeGuard(const Making &making, const Effect &effect) {
  static constexpr std::string_view gpusAlone = "gpu";
  Call &call = making.call;
  const Value before = scalarValue(call.row.currentDevice);
  if (!making.args.empty()) {
    makeCurrent(call, making.arg(0));
    if (effect.detail() == gpusAlone && isOfHost(call, making.arg(0)))
      call.row.currentDevice = intTerm(-1);
  }
  return making.done(recordValue(making.type, {{hidden::deviceBefore, before}}));
}

} // namespace

Words deviceWords() {
  return {{{"device_of_options", deviceOfOptions},
           {"with_device", withDevice},
           {"with_device_index", withDeviceIndex},
           {"with_pinned_memory", withPinnedMemory},
           {"has_device", hasDevice},
           {"merge_options", mergeOptions},
           {"keep_options", keepOptions},
           {"options", plainOptions},
           {"device_text", deviceText},
           {"device_type", deviceTypeOf},
           {"device_index", deviceIndex},
           {"set_device_index", setDeviceIndex},
           {"is_available", isAvailable},
           {"device_count", deviceCount},
           {"rank", rank},
           {"environment_variable", environmentVariable},
           {"set_environment_variable", setEnvironmentVariable},
           {"current_device", currentDevice}},
          {},
          {{"make_device", makeDeviceObject}, {"make_options", makeOptionsObject}, {"guard", makeGuard}}};
}

} // namespace devicetidy
