//===- Devices.cpp - c10::Device, TensorOptions, guards -------------===//
#include "analyzer/solve/library/torch/Devices.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/torch/LegacyTypes.h"

#include <algorithm>

namespace devicetidy {
namespace {

Term availableTerm() { return symbolTerm("a CUDA device is available"); }
Term countTerm() { return symbolTerm("number of CUDA devices"); }

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
  std::optional<Placement> device = deviceOf(machine, call.row, first);
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
    if (std::optional<Placement> device = deviceOf(call.machine, call.row, arg))
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
  std::optional<Placement> device = deviceOf(call.machine, call.row, object);
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
    std::optional<Placement> other = deviceOf(call.machine, call.row, call.arg(0));
    if (!other)
      return call.done(call.machine.unknownResult(call));
    Term equal = sameDeviceTerm(placement, call.row.resolve(*other));
    return call.done(scalarValue(method == "operator==" ? equal : notTerm(equal)));
  }
  return call.done(call.machine.unknownResult(call));
}

void makeCurrent(Call &call, const Value &device) {
  Term index = nullptr;
  if (std::optional<Placement> placement = deviceOf(call.machine, call.row, device)) {
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

Placement deviceOfEnum(std::int64_t number) {
  // c10/core/DeviceType.h
  static const char *const names[] = {"cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
                                      "fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
                                      "meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone"};
  if (number == 0)
    return Placement::cpu();
  if (number == 1)
    return Placement::cuda(currentCudaIndex());
  if (number > 1 && number < static_cast<std::int64_t>(std::size(names)))
    return Placement::other(names[number]);
  return Placement::unknown();
}

std::optional<Placement> parseDevice(std::string_view text) {
  std::string_view type = text.substr(0, text.find(':'));
  std::string_view index = text.size() > type.size() ? text.substr(type.size() + 1) : std::string_view();
  if (type == "cpu")
    return Placement::cpu();
  if (type == "cuda" || type == "gpu") {
    if (index.empty())
      return Placement::cuda(currentCudaIndex());
    std::int64_t number = 0;
    for (char c : index) {
      if (c < '0' || c > '9' || number > 1000)
        return std::nullopt;
      number = number * 10 + (c - '0');
    }
    return Placement::cuda(intTerm(number));
  }
  for (std::string_view other : {"mps", "xpu", "meta", "xla", "hip", "vulkan", "hpu", "privateuseone"})
    if (type == other)
      return Placement::other(Name(other));
  return std::nullopt;
}

std::optional<Placement> deviceOf(const Machine &machine, const Row &row, const Value &value) {
  switch (value->kind) {
  case ValueKind::Device:
    return row.resolve(value->placement);
  case ValueKind::Options:
    return value->hasDevice ? std::optional<Placement>(row.resolve(value->placement)) : std::nullopt;
  case ValueKind::Tensor:
    return machine.memory.placementOf(row, value);
  case ValueKind::Scalar: {
    Term term = row.resolve(value->term);
    if (std::optional<Name> text = textOf(term)) {
      if (std::optional<Placement> parsed = parseDevice(text->view()))
        return parsed;
      return std::nullopt;
    }
    if (constantOf(term))
      return std::nullopt;
    return Placement::symbol(SymbolRole::DeviceChoice, term, "a device chosen at run time");
  }
  default:
    return std::nullopt;
  }
}

namespace {

const Name isCudaOp("is_cuda");

// Each thread has terms of its own (Term.cpp).
Term isCudaOfUnknown() {
  thread_local const Term term = symbolTerm("is_cuda of an unknown tensor");
  return term;
}

} // namespace

bool asksForCuda(Term condition) {
  return condition == isCudaOfUnknown() || deviceWithIndex(condition) ||
         (condition->kind == TermKind::Apply && condition->name == isCudaOp);
}

Term isCudaTerm(const Placement &device) {
  switch (device.kind) {
  case PlacementKind::Cuda:
    return intTerm(1);
  case PlacementKind::Cpu:
  case PlacementKind::Other:
    return intTerm(0);
  default:
    return device.index ? applyTerm(isCudaOp, {deviceTerm(device)}) : isCudaOfUnknown();
  }
}

Term sameDeviceTerm(const Placement &a, const Placement &b) {
  if (!a.isKnown() && !b.isKnown())
    return symbolTerm("same device of two unknown tensors");
  if (!a.isKnown() || !b.isKnown())
    return applyTerm("unknown device ==", {deviceTerm(a.isKnown() ? a : b)});
  if (a == b)
    return intTerm(1);
  if (a.kind == PlacementKind::Symbol || b.kind == PlacementKind::Symbol) {
    const Placement &symbol = a.kind == PlacementKind::Symbol ? a : b;
    const Placement &other = a.kind == PlacementKind::Symbol ? b : a;
    if (other.kind == PlacementKind::Cpu)
      return notTerm(isCudaTerm(symbol));
    if (other.kind == PlacementKind::Cuda && other.index == currentCudaIndex())
      return isCudaTerm(symbol);
    return applyTerm("==", {deviceTerm(a), deviceTerm(b)});
  }
  if (a.kind != b.kind)
    return intTerm(0);
  if (a.kind == PlacementKind::Cuda) // a row that knows them to be equal knows the index, too
    return applyTerm("==", {a.index, b.index});
  return applyTerm("==", {deviceTerm(a), deviceTerm(b)});
}

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

bool isAssumed(const Row &row, const Placement &placement) {
  return placement.isKnown() && constantOf(row.resolve(sameDeviceTerm(placement, Placement::unknown()))) == 1;
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

Placement Machine::concrete(const Row &row, Placement placement) const {
  placement = row.resolve(placement);
  if (placement.kind == PlacementKind::Cuda && placement.index == currentCudaIndex())
    placement.index = row.currentDevice;
  return placement;
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
    std::optional<Placement> device = deviceOf(call.machine, call.row, call.operand(0));
    return call.done(device ? deviceValue(*device) : unknownValue());
  }
  return std::nullopt;
}

// Constructors of devices, options and guards; `args` are values.
Term asAvailability(Term term) {
  if (term->kind != TermKind::Apply)
    return term;
  if (term->args.size() == 1 && term->name == Name("!")) {
    const Term inner = asAvailability(term->args[0]);
    return inner == term->args[0] ? term : notTerm(inner);
  }
  if (term->args.size() != 2)
    return term;
  const std::optional<std::int64_t> left = constantOf(term->args[0]), right = constantOf(term->args[1]);
  const bool countLeft = term->args[0] == countTerm(), countRight = term->args[1] == countTerm();
  if (term->name == Name("<") && countRight && left == 0)
    return availableTerm();
  const bool isNone = (term->name == Name("<") && countLeft && right == 1) ||
                      (term->name == Name("==") && ((countLeft && right == 0) || (countRight && left == 0)));
  return isNone ? notTerm(availableTerm()) : term;
}

bool Machine::isAbsent(const Row &row, const Placement &placement) {
  if (placement.kind != PlacementKind::Cuda)
    return false;
  const Term some = applyTerm(">", {countTerm(), intTerm(0)});
  return constantOf(row.resolve(availableTerm())) == 0 || constantOf(row.resolve(countTerm())) == 0 ||
         constantOf(row.resolve(some)) == 0;
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
