//===- Devices.cpp - c10::Device, TensorOptions, guards -------------===//
#include "analyzer/solve/library/torch/Devices.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/torch/LegacyTypes.h"

#include <algorithm>

namespace devicetidy {
namespace {

const Name guardField("@device before");

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
    // A name nobody knows (a command line, a configuration) chooses the device.
    const std::size_t named = call.fact.kind == FactKind::Construct ? 1 : 0;
    const bool isName = call.fact.operands.size() > named &&
                        machine.types.classOf(call.fact.operands[named].type) == TypeClass::String;
    return isName ? deviceValue(Placement::symbol(SymbolRole::DeviceChoice, machine.freshScalar(call),
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

// Options builder methods: device(...) sets the device, everything else keeps it.
std::optional<Outcomes> modelOptions(Call &call, std::string_view method) {
  Value options = call.object();
  if (method == "device" || method == "device_opt") {
    if (call.argCount() == 0)
      return call.done(
          is(options, ValueKind::Options)
              ? deviceValue(options->hasDevice ? options->placement : Placement::cpu(), options->history)
              : unknownValue());
    const Value made = makeOptions(call, {makeDevice(call, operandsFrom(call, 1), indexText(call, 1))});
    if (!options->pinned || !is(made, ValueKind::Options))
      return call.done(made);
    return call.done(optionsValue(made->hasDevice ? &made->placement : nullptr, made->history, true));
  }
  if (method == "device_index" && call.argCount() == 1) {
    Value index = call.arg(0);
    if (!is(index, ValueKind::Scalar))
      return call.done(unknownValue());
    Placement placement = Placement::cuda(call.row.resolve(index->term));
    placement.text = call.fact.operands[1].text;
    return call.done(optionsValue(&placement));
  }
  if (method == "pinned_memory" && is(options, ValueKind::Options))
    return call.done(
        optionsValue(options->hasDevice ? &options->placement : nullptr, options->history, true));
  if (method == "has_device" && is(options, ValueKind::Options))
    return call.done(scalarValue(intTerm(options->hasDevice)));
  if (method == "merge_in" || method == "merge_memory_format") {
    Value other = call.argCount() ? call.arg(0) : options;
    return call.done(is(other, ValueKind::Options) && other->hasDevice ? other : options);
  }
  if (call.machine.types.classOf(call.resultType()) == TypeClass::Options)
    return call.done(options);
  return call.done(call.machine.unknownResult(call));
}

std::optional<Outcomes> modelDeviceMethod(Call &call, std::string_view method) {
  Value object = call.object();
  std::optional<Placement> device = deviceOf(call.machine.memory, call.row, object);
  if (!device)
    return call.done(call.machine.unknownResult(call));
  Placement placement = call.row.resolve(*device);
  if (method == "str") { // a text that names a device is one
    const bool isText = placement.kind == PlacementKind::Cpu ||
                        (placement.kind == PlacementKind::Cuda && constantOf(placement.index));
    return call.done(isText ? scalarValue(textTerm(Name(placement.describe())))
                            : deviceValue(placement, object->history));
  }
  if (method == "is_cuda")
    return call.done(scalarValue(isCudaTerm(placement)));
  if (method == "is_cpu")
    return call.done(scalarValue(sameDeviceTerm(placement, Placement::cpu())));
  if (method == "type") {
    if (placement.kind == PlacementKind::Cuda)
      placement.index = currentCudaIndex();
    return call.done(deviceValue(placement, object->history));
  }
  // One chosen outside may be CUDA's without an index; of a tensor's device -1 says that it is the CPU.
  const bool isChosen = placement.kind == PlacementKind::Symbol && placement.role != SymbolRole::Tensor;
  if (method == "index" && !isChosen)
    return call.done(indexValue(call, placement));
  if (method == "set_index" && placement.kind == PlacementKind::Cuda && is(call.arg(0), ValueKind::Scalar)) {
    placement.index = call.arg(0)->term;
    call.machine.memory.write(call.row, call.objectAddress(), deviceValue(placement));
    return call.done(unknownValue());
  }
  if ((method == "operator==" || method == "operator!=") && call.argCount() == 1) {
    std::optional<Placement> other = deviceOf(call.machine.memory, call.row, call.arg(0));
    if (!other)
      return call.done(call.machine.unknownResult(call));
    Term equal = sameDeviceTerm(placement, call.row.resolve(*other));
    return call.done(scalarValue(method == "operator==" ? equal : notTerm(equal)));
  }
  return call.done(call.machine.unknownResult(call));
}

void makeCurrent(Call &call, const Value &device) {
  Term index = nullptr;
  if (std::optional<Placement> placement = deviceOf(call.machine.memory, call.row, device)) {
    Placement resolved = call.machine.concrete(call.row, *placement);
    if (resolved.kind == PlacementKind::Cuda)
      index = resolved.index;
    else if (resolved.kind == PlacementKind::Symbol)
      index = indexOf(resolved.index);
    else
      return;
  } else if (is(device, ValueKind::Scalar)) {
    index = call.row.resolve(device->term);
  } else {
    index = call.machine.freshScalar(call);
  }
  call.row.currentDevice = index;
}

} // namespace

Value indexValue(Call &call, const Placement &placement) {
  switch (placement.kind) {
  case PlacementKind::Cpu:
    return scalarValue(intTerm(-1));
  case PlacementKind::Cuda:
    if (!constantOf(placement.index))
      call.row.assume(applyTerm("<", {intTerm(-1), placement.index}), 1);
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
    // Options that nobody knows may name any device.
    if (is(value, ValueKind::Unknown) && (type == TypeClass::Options || type == TypeClass::Device))
      return value;
  }
  return std::nullopt;
}

std::optional<Outcomes> modelDevices(Call &call) {
  std::string_view name = call.fact.name.view();
  if (startsWith(name, "c10::TensorOptions::"))
    return modelOptions(call, name.substr(20));
  if (startsWith(name, "c10::Device::"))
    return modelDeviceMethod(call, name.substr(13));
  if (std::optional<Outcomes> outcomes = modelLegacyTypes(call))
    return outcomes;
  const models::Api api = models::api(name);
  if (api.role == "options" || name == "c10::device" || name == "c10::dtype" || name == "c10::layout" ||
      name == "c10::requires_grad" || name == "c10::device_index") {
    if (name == "c10::device" || name == "torch::device" || name == "at::device")
      return call.done(makeOptions(call, {makeDevice(call, operandsFrom(call, 0), indexText(call, 0))}));
    if (name == "c10::device_index" && is(call.operand(0), ValueKind::Scalar)) {
      Placement placement = Placement::cuda(call.row.resolve(call.operand(0)->term));
      return call.done(optionsValue(&placement));
    }
    return call.done(optionsValue(nullptr));
  }
  if (api.role == "is_available")
    return call.done(scalarValue(call.row.resolve(availableTerm())));
  if (api.role == "device_count")
    return call.done(scalarValue(call.row.resolve(countTerm())));
  // The rank: a device index made from it differs from process to process.
  if ((name == "getenv" || name == "std::getenv" || name == "secure_getenv") &&
      is(call.operand(0), ValueKind::Scalar))
    if (std::optional<Name> variable = textOf(call.row.resolve(call.operand(0)->term));
        variable && models::isDistributed(variable->view(), "rank"))
      return call.done(scalarValue(applyTerm("rank", {textTerm(*variable)})));
  if (models::isDistributed(name, "rank"))
    return call.done(scalarValue(applyTerm("rank", {textTerm(call.fact.name)})));
  if (api.role == "set_device") {
    makeCurrent(call, call.operand(0));
    return call.done(unknownValue());
  }
  if (call.fact.hasObject && name.find("Guard::") != std::string_view::npos &&
      models::api(name.substr(0, name.rfind("::"))).role == "guard") {
    const std::string_view method = name.substr(name.rfind("::") + 2);
    if (method == "reset_device" || method == "set_device" || method == "set_index" ||
        method == "reset_stream")
      makeCurrent(call, call.operand(1));
    return call.done(call.machine.unknownResult(call));
  }
  if (api.role == "current_device")
    return call.done(scalarValue(call.row.currentDevice));
  if (api.role == "device_of") {
    std::optional<Placement> device = deviceOf(call.machine.memory, call.row, call.operand(0));
    return call.done(device ? deviceValue(*device) : unknownValue());
  }
  return std::nullopt;
}

std::optional<Value> constructDevice(Call &call, Name type, const std::vector<Value> &args) {
  static const Name dtype("caffe2::TypeMeta");
  switch (call.machine.types.classOf(type)) {
  case TypeClass::Device:
    return makeDevice(call, args, indexText(call, 1));
  case TypeClass::Options:
    if (!call.fact.operands.empty() && call.fact.operands.back().type == dtype)
      return optionsValue(nullptr);
    return makeOptions(call, args);
  default:
    break;
  }
  const Type *record = call.machine.program.type(type);
  std::string_view name = record ? record->templateName.view() : type.view();
  if (models::api(name).role != "guard")
    return std::nullopt;
  std::map<Name, Value> fields{{guardField, scalarValue(call.row.currentDevice)}};
  if (!args.empty())
    makeCurrent(call, args[0]);
  return recordValue(type, std::move(fields));
}

} // namespace devicetidy
