//===- Devices.cpp - devices, the current one and the default one ---===//
//
// Tensors for which no device is named are made on the default device, which is kept in a global of the
// program: unset, None, or a device.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/torch/Devices.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/torch/RankDevices.h"

namespace devicetidy {
namespace python {
namespace {

using models::Effect;
using Function = Outcomes (*)(Call &call, Row &row, const std::string &name, const Given &given);

const Name currentType("python::cuda::device"), managerType("python::manager");

Address defaultDevice(const Call &call) {
  return {call.machine.memory.global("python::default_device", {}, "the default device")};
}

Value setDefault(const Call &call, Row &row, const Value &device) {
  const Address where = defaultDevice(call);
  const Value before = row.store.get(where.root) ? call.machine.memory.read(row, where) : nullValue();
  call.machine.memory.write(row, where, device);
  return before;
}

Value setCurrent(Call &call, Row &row, const Value &device, bool isForBlock) {
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  const Value before = scalarValue(row.currentDevice), named = asDevice(inner, device);
  const bool isKnown = is(named, ValueKind::Device) && named->placement.kind != PlacementKind::Unknown;
  makeCurrent(inner, isKnown ? named : unknownValue());
  meetSetDevice(inner, before->term, isForBlock);
  meetRankIndex(inner, row.currentDevice, "set_device");
  row = std::move(inner.row);
  return before;
}

Outcomes makeDevice(Call &call, Row &row, const std::string &, const Given &given) {
  const Argument *type = given.find("type", 0), *index = given.find("index", 1);
  if (!type)
    return done(row, unknownValue());
  Value device = asDevice(call, asChosenDevice(type->value));
  if (index && is(device, ValueKind::Device) && is(index->value, ValueKind::Scalar)) {
    ValueData indexed = *deviceValue(Placement::cuda(row.resolve(index->value->term)));
    indexed.hasDevice = true;
    device = makeValue(std::move(indexed));
  }
  return done(row, is(device, ValueKind::Device) ? device : deviceValue(Placement::unknown()));
}

Outcomes askCuda(Call &call, Row &row, const std::string &name, const Given &) {
  const std::string scope = name == "current_device" ? "c10::cuda::" : "torch::cuda::";
  return callTorch(call, row, scope + name, {}, false, name == "is_available" ? "bool" : "long");
}

Outcomes setCurrentDevice(Call &call, Row &row, const std::string &, const Given &given) {
  if (const Argument *device = given.find("device", 0))
    setCurrent(call, row, device->value, /*isForBlock=*/false);
  return done(row, nullValue());
}

// torch.cuda.device(d) and device_of(tensor): what `with` makes current.
Outcomes makeCurrentContext(Call &, Row &row, const std::string &name, const Given &given) {
  const Argument *device = given.find(name == "device" ? "device" : "obj", 0);
  return done(row, recordValue(currentType, {{"device", device ? device->value : unknownValue()}}));
}

Outcomes setDefaultDevice(Call &call, Row &row, const std::string &, const Given &given) {
  const Argument *device = given.find("device", 0);
  const Value named = device ? asDevice(call, device->value) : unknownValue();
  const bool isKnown = is(named, ValueKind::Device) || is(named, ValueKind::Null);
  setDefault(call, row, isKnown ? named : deviceValue(Placement::unknown()));
  return done(row, nullValue());
}

// set_default_tensor_type(torch.cuda.FloatTensor), or the same as a text.
Outcomes setDefaultType(Call &call, Row &row, const std::string &, const Given &given) {
  const Value type = given.positional.empty() ? unknownValue() : given.positional[0].value;
  const std::string name = is(type, ValueKind::Function) ? type->type.str() : textOf(call, type).value_or("");
  setDefault(call, row,
             name.empty()                      ? deviceValue(Placement::unknown())
             : startsWith(name, "torch.cuda.") ? deviceValue(Placement::cuda(currentCudaIndex()))
                                               : nullValue());
  return done(row, nullValue());
}

Outcomes getDefaultDevice(Call &call, Row &row, const std::string &, const Given &) {
  const std::optional<Value> device = defaultDeviceOf(call, row);
  return done(row, device ? *device : deviceValue(Placement::cpu()));
}

const std::map<std::string, Function> &functions() {
  static const std::map<std::string, Function> all = {{"torch.device", makeDevice},
                                                      {"torch.cuda.is_available", askCuda},
                                                      {"torch.cuda.device_count", askCuda},
                                                      {"torch.cuda.current_device", askCuda},
                                                      {"torch.cuda.set_device", setCurrentDevice},
                                                      {"torch.cuda.device", makeCurrentContext},
                                                      {"torch.cuda.device_of", makeCurrentContext},
                                                      {"torch.set_default_device", setDefaultDevice},
                                                      {"torch.get_default_device", getDefaultDevice},
                                                      {"torch.set_default_tensor_type", setDefaultType}};
  return all;
}

// with torch.device("cuda"), with torch.cuda.device(1): what was there before is given to the end of the
// block.
std::optional<Outcomes> enterWord(Call &call, const Effect &) {
  const Value manager = call.operand(0);
  Row row = call.row;
  if (is(manager, ValueKind::Device))
    return done(row, setDefault(call, row, manager));
  if (std::optional<Outcomes> outcomes = callSpecial(
          call, {manager, {}, call.fact.operands[0].text, &call.fact.operands[0]}, "__enter__", {}))
    return outcomes;
  if (is(manager, ValueKind::Address) && is(behind(call, manager), ValueKind::List)) {
    // A generator with several yields. What comes behind them has been run, too, so nothing is known of where
    // a module or a tensor is.
    const auto yielded = elementsOf(call, manager);
    const Value given = yielded && !yielded->empty() ? yielded->front() : unknownValue();
    const bool isPlaced =
        is(given, ValueKind::Tensor) || call.machine.types.isModule(behind(call, given)->type);
    return call.done(isPlaced ? unknownValue() : given);
  }
  if (is(manager, ValueKind::Record) && manager->type == managerType)
    return call.done(manager->fields.at("entered"));
  if (manager->type != currentType)
    return call.done(is(manager, ValueKind::Address) ? manager : unknownValue());
  const Value device = manager->fields.at("device");
  const Placement now =
      is(device, ValueKind::Tensor) ? call.machine.memory.placementOf(row, device) : Placement();
  const Value before = setCurrent(call, row, is(device, ValueKind::Tensor) ? deviceValue(now) : device, true);
  return done(row, before);
}

// What a generator has entered, and the function that does what stands behind its yield.
std::optional<Outcomes> managerWord(Call &call, const Effect &) {
  const Value entered = call.fact.operands.size() > 1 ? call.operand(1) : nullValue();
  return call.done(recordValue(managerType, {{"entered", entered}, {"exit", call.operand(0)}}));
}

std::optional<Outcomes> exitWord(Call &call, const Effect &) {
  const Value manager = call.operand(0), before = call.operand(1);
  const Argument none{nullValue(), {}};
  if (std::optional<Outcomes> outcomes =
          callSpecial(call, {manager, {}, call.fact.operands[0].text}, "__exit__", {none, none, none}))
    return outcomes;
  if (is(manager, ValueKind::Record) && manager->type == managerType)
    return callValue(call, call.row, manager->fields.at("exit"), {}, {manager, {}});
  if (is(manager, ValueKind::Device))
    setDefault(call, call.row, before);
  else if (manager->type == currentType && is(before, ValueKind::Scalar))
    call.row.currentDevice = before->term;
  return call.done(nullValue());
}

// In the handler of an exception by which the program asks whether something is there: not in few runs only.
std::optional<Outcomes> expectedWord(Call &call, const Effect &) {
  const Condition asked{guess(symbolTerm("a lookup failed")), 1};
  std::replace(call.row.known.begin(), call.row.known.end(), raisedCondition(), asked);
  return call.done(nullValue());
}

} // namespace

std::optional<Value> defaultDeviceOf(const Call &call, const Row &row) {
  const Address where = defaultDevice(call);
  if (!row.store.get(where.root))
    return std::nullopt;
  const Value device = call.machine.memory.read(row, where);
  if (is(device, ValueKind::Null))
    return std::nullopt;
  return is(device, ValueKind::Device) ? device : deviceValue(Placement::unknown());
}

Given withDefaultDevice(const Call &call, const Row &row, const Given &given) {
  const Argument *said = given.find("device");
  const bool isSaid = said && !is(said->value, ValueKind::Null);
  const std::optional<Value> device = isSaid            ? std::nullopt
                                      : given.namedRest ? std::optional(deviceIn(call, row, given.namedRest))
                                                        : defaultDeviceOf(call, row);
  Given with = given;
  if (device) // found before what is said further on
    with.named.insert(with.named.begin(), {"device", Argument{*device, {}}});
  return with;
}

std::optional<Outcomes> callDeviceFunction(Call &call, Row &row, const std::string &dotted,
                                           const Given &given) {
  const auto known = functions().find(dotted);
  if (known == functions().end())
    return std::nullopt;
  return known->second(call, row, dotted.substr(dotted.rfind('.') + 1), given);
}

} // namespace python

Words pythonDeviceWords() {
  return {{{"py_enter", python::enterWord},
           {"py_exit", python::exitWord},
           {"py_manager", python::managerWord},
           {"py_expected", python::expectedWord}},
          {},
          {}};
}

} // namespace devicetidy
