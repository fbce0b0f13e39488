//===- Models.cpp - what models of Python libraries ask the interpreter to do ---===//
//
// analyzer/models/bodies/python says in Python what libraries do; what Python has no words for are functions
// of `dt`, which are here.
//
//===----------------------------------------------------------------------===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Groups.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/Loads.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/python/Spread.h"
#include "analyzer/solve/library/torch/Modules.h"
#include "analyzer/solve/library/torch/OptimizerState.h"

namespace devicetidy::python {
namespace {

using Primitive = Value (*)(Call &call, Row &row, const Given &given);

constexpr int nesting = 6; ///< of what is moved in collections

Value argument(const Given &given, std::size_t i) {
  return i < given.positional.size() ? given.positional[i].value : unknownValue();
}

// "Linear", of torch::nn::LinearImpl and of transformers.Linear.
std::string nameOf(Name type) {
  std::string_view name = lastPart(type.view());
  name.remove_prefix(name.find_last_of(".:") + 1);
  return std::string(name.substr(0, name.size() - (endsWith(name, "Impl") ? 4 : 0)));
}

Value moved(Call &call, Row &row, const Value &value, const Placement &to, int depth);

// A list or dictionary of the same kind, of what is moved.
Value movedParts(Call &call, Row &row, const Value &held, const Placement &to, int depth) {
  ValueData data = *held;
  for (auto *parts : {&data.elements, &data.summary})
    for (Value &each : *parts)
      each = moved(call, row, each, to, depth - 1);
  for (auto &[field, entry] : data.fields)
    if (isEntry(field))
      entry = moved(call, row, entry, to, depth - 1);
  return makeValue(std::move(data));
}

Value moved(Call &call, Row &row, const Value &value, const Placement &to, int depth) {
  Machine &machine = call.machine;
  if (is(value, ValueKind::Tensor))
    return machine.memory.placementOf(row, value) == to
               ? value
               : tensorValue(to, machine.memory.rankOf(row, value),
                             machine.note(machine.memory.historyOf(row, value), StepKind::Moved,
                                          call.fact.where, {}, to.describe()));
  if (depth == 0)
    return unknownValue();
  if (is(value, ValueKind::List))
    return movedParts(call, row, value, to, depth);
  const Value held = is(value, ValueKind::Address) ? machine.memory.read(row, value->address) : value;
  if (is(held, ValueKind::Record) && machine.types.isModule(held->type)) {
    if (!held->fields.count(spreadField))
      moveModule(
          machine, row, value->address, to,
          machine.note(nullptr, StepKind::ModuleMoved, call.fact.where, nameOf(held->type), to.describe()));
    return value;
  }
  if (is(held, ValueKind::Record) && held->type == loaderType)
    return allocated(call, row, loaderType,
                     withField(held, "batch", moved(call, row, held->fields.at("batch"), to, depth - 1)));
  if (is(held, ValueKind::List) || isDict(held))
    return allocated(call, row, isDict(held) ? dictType : Name("python::list"),
                     movedParts(call, row, held, to, depth));
  return value;
}

std::optional<Placement> targetOf(Call &call, const Row &row, const Value &device) {
  const Value where = asDevice(call, device);
  return is(where, ValueKind::Device) ? std::optional(call.machine.concrete(row, where->placement))
                                      : std::nullopt;
}

} // namespace

Value movedTo(Call &call, Row &row, const Value &value, const Placement &to) {
  return moved(call, row, value, to, nesting);
}

namespace {

// moved(value, device): tensors in collections are, too; modules and loaders move themselves.
Value moveAll(Call &call, Row &row, const Given &given) {
  const Value value = argument(given, 0);
  const auto to = targetOf(call, row, argument(given, 1));
  return is(value, ValueKind::Unknown) && to && to->isKnown()
             ? placedValue(call, *to, false)
             : moved(call, row, value, to.value_or(Placement::unknown()), nesting);
}

// move(dictionary, device): its entries, in place.
Value moveEntries(Call &call, Row &row, const Given &given) {
  const Value on = argument(given, 0);
  const auto to = targetOf(call, row, argument(given, 1));
  if (is(on, ValueKind::Address))
    call.machine.memory.write(row, on->address,
                              movedParts(call, row, call.machine.memory.read(row, on->address),
                                         to.value_or(Placement::unknown()), nesting));
  return on;
}

// own(module): it has parameters, which are made on the CPU.
Value ownParameters(Call &call, Row &row, const Given &given) {
  const Value module = argument(given, 0);
  if (is(module, ValueKind::Address))
    call.machine.memory.write(
        row, module->address.field(hidden::parameters),
        tensorValue(Placement::cpu(), someRank,
                    call.machine.note(nullptr, StepKind::ModuleMade, call.fact.where, "model", "cpu")));
  return nullValue();
}

// How the user calls what runs: `model`, of model(..) and model.generate(..).
std::string calledAs(const Call &call) {
  const Fact &site = call.frame.site ? *call.frame.site : call.fact;
  return site.operands.empty() ? std::string() : site.operands[0].text.str();
}

void addParameters(const Call &call, const Address &module, std::vector<TensorUse> &uses, int depth) {
  const Value record = call.machine.memory.read(call.row, module);
  for (const auto &[field, value] : record->fields)
    if (hidden::isParameter(field) && is(value, ValueKind::Tensor))
      uses.push_back({parameterHandle(module.field(field)), nullptr,
                      "the parameters of '" + calledAs(call) + "'", nullptr, true});
    else if (hidden::isSubmodule(field) && is(value, ValueKind::Address) && depth > 0)
      addParameters(call, value->address, uses, depth - 1);
}

// What a caller passes as a model of a library makes something where it was moved, or where its input is.
Value madeByGiven(Call &call, Row &row, const Address &module, const Given &inputs) {
  const Memory &memory = call.machine.memory;
  const auto first = std::find_if(inputs.positional.begin() + 1, inputs.positional.end(),
                                  [](const Argument &each) { return is(each.value, ValueKind::Tensor); });
  if (!memory.read(row, module)->origin || first == inputs.positional.end())
    return unknownValue();
  row.guessed = true;
  const Value moved = movedDevice(call.machine, row, module);
  return tensorValue(moved ? moved->placement : memory.placementOf(row, first->value), someRank,
                     memory.historyOf(row, moved ? moved : first->value));
}

// run(module, inputs..): a tensor that it makes of them, where its parameters are.
Value runModule(Call &call, Row &row, const Given &given) {
  Machine &machine = call.machine;
  const Value module = argument(given, 0);
  Call inner{machine, call.frame, row, call.fact, call.first};
  std::vector<TensorUse> uses;
  if (!is(module, ValueKind::Address))
    return unknownValue();
  addParameters(inner, module->address, uses, nesting);
  if (uses.empty())
    return madeByGiven(call, row, module->address, given);
  const std::size_t own = uses.size();
  for (std::size_t i = 1; i < given.positional.size(); ++i)
    if (is(given.positional[i].value, ValueKind::Tensor))
      uses.push_back({given.positional[i].value, nullptr, "'" + given.positional[i].text.str() + "'"});
  Machine::Requirement requirement;
  requirement.operation = calledAs(call);
  if (call.machine.memory.read(row, module->address)->fields.count(spreadField)) // it comes back there
    return uses.size() > own ? tensorValue(machine.memory.placementOf(row, uses[own].tensor), someRank,
                                           machine.memory.historyOf(row, uses[own].tensor))
                             : unknownValue();
  const Placement where = uses.size() > own ? machine.requireSame(inner, uses, requirement)
                                            : modulePlacement(machine, row, module->address);
  return tensorValue(where, someRank, machine.memory.historyOf(row, uses[0].tensor));
}

// together(a, b): the function that the user calls takes them on one device only.
Value keepTogether(Call &call, Row &row, const Given &given) {
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  std::vector<TensorUse> uses;
  for (const Argument &each : given.positional)
    if (is(each.value, ValueKind::Tensor))
      uses.push_back({each.value, nullptr, "'" + each.text.str() + "'"});
  Machine::Requirement requirement;
  requirement.operation = calledAs(call);
  if (uses.size() > 1)
    call.machine.requireSame(inner, uses, requirement);
  return nullValue();
}

// are_together(tensors): none of them is known to be elsewhere than another.
Value areTogether(Call &call, Row &row, const Given &given) {
  Placement first;
  for (const Value &each : alternatives(call, argument(given, 0))) {
    const Placement place = call.machine.memory.placementOf(row, each);
    if (place.isKnown() && first.isKnown() && place != first)
      return scalarValue(intTerm(0));
    if (!first.isKnown())
      first = place;
  }
  return scalarValue(intTerm(1));
}

// keeper(parameters, factor): what an optimizer keeps of them; nothing for a factor that is zero, or may be.
Value makeKeeper(Call &call, Row &row, const Given &given) {
  static const Name type("python::keeper");
  const Argument *factor = given.find("factor", 1);
  const bool isNumber = factor && is(factor->value, ValueKind::Scalar);
  const Value record = recordValue(type, {{hidden::optimized, behind(call, argument(given, 0))}});
  const bool keeps = !factor || (isNumber && numberOf(row.resolve(factor->value->term)).value_or(0) != 0);
  return allocated(call, row, type,
                   keeps ? withField(record, hidden::keeps, scalarValue(intTerm(1))) : record);
}

// step(keeper): it must be where the parameters are.
Value stepKeeper(Call &call, Row &row, const Given &given) {
  const Value keeper = argument(given, 0), held = behind(call, keeper);
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  if (isOptimizer(held))
    stepState(inner, keeper->address, held);
  return nullValue();
}

// device_of_map(map): where a loader puts a whole model; None where it spreads it, or may.
Value deviceOfMap(Call &call, Row &, const Given &given) {
  const Value map = argument(given, 0);
  const Value held = behind(call, map);
  if (is(map, ValueKind::Null))
    return deviceValue(Placement::cpu());
  const std::vector<Name> entries = isDict(held) ? fieldsInOrder(held) : std::vector<Name>();
  const bool hasOneEntry = entries.size() == 1 && entries.front() != anyEntryField;
  const Value device = asDevice(call, hasOneEntry ? held->fields.at(entries.front()) : map);
  return is(device, ValueKind::Device) ? device : nullValue();
}

// spread(module): its layers are on several devices, and what they get is brought there.
Value spreadModule(Call &call, Row &row, const Given &given) {
  const Value module = argument(given, 0);
  if (is(module, ValueKind::Address))
    spread(call, row, module->address);
  return module;
}

// layer(module, of, index): one of the layers of such a model.
Value placeLayerOf(Call &call, Row &row, const Given &given) {
  const Value module = argument(given, 0), of = argument(given, 1), index = argument(given, 2);
  if (is(module, ValueKind::Address) && is(of, ValueKind::Address))
    placeLayer(
        call, row, module->address,
        applyTerm(op::element, {intTerm(of->address.root),
                                is(index, ValueKind::Scalar) ? row.resolve(index->term) : intTerm(-1)}));
  return module;
}

// output(module): a tensor that it has made.
Value outputOf(Call &call, Row &row, const Given &given) {
  const Value module = argument(given, 0);
  if (!is(module, ValueKind::Address))
    return unknownValue();
  const Value weights = call.machine.memory.read(row, module->address.field(hidden::parameters));
  return tensorValue(modulePlacement(call.machine, row, module->address), someRank, weights->history);
}

// What tells a file from others: the object that stands for it, its name, or what its name is made of.
std::string keyOfFile(const Call &call, const Value &path) {
  if (is(path, ValueKind::Address))
    return std::to_string(path->address.root);
  const Term made = path->term ? path->term : path->origin;
  return textOf(call, path).value_or(made ? "made of " + std::to_string(made->hash) : std::string());
}

RootId savedRoot(const Call &call, const std::string &key) {
  return call.machine.memory.global(Name("@saved " + key), {}, {});
}

// save(path, module), saved(path): what was saved there, or None.
Value save(Call &call, Row &row, const Given &given) {
  row.store.set(savedRoot(call, keyOfFile(call, argument(given, 0))), argument(given, 1));
  return nullValue();
}

Value saved(Call &call, Row &row, const Given &given) {
  const std::string key = keyOfFile(call, argument(given, 0));
  const Value model = key.empty() ? nullptr : row.store.get(savedRoot(call, key));
  return model ? model : nullValue();
}

Value isSpread(Call &call, Row &, const Given &given) {
  const Value held = behind(call, argument(given, 0));
  return scalarValue(intTerm(is(held, ValueKind::Record) && held->fields.count(spreadField)));
}

// launched(command): the program is started by it, which is where the fact is.
Value isLaunched(Call &, Row &row, const Given &) {
  launch(row);
  return nullValue();
}

RootId rootOfFile(const Call &call, const std::string &name) {
  const std::string last = name.substr(name.rfind('/') + 1);
  return call.machine.memory.global(Name("@file " + last), {}, {});
}

// has_file(name, data): there is a JSON file, and what is in it.
Value hasFile(Call &call, Row &row, const Given &given) {
  if (const auto name = textOf(call, argument(given, 0)))
    row.store.set(rootOfFile(call, *name), argument(given, 1));
  return nullValue();
}

Value hasRanksOf(Call &, Row &row, const Given &) { return scalarValue(intTerm(hasRanks(row))); }

// chosen(object): its numbers, texts and what is not given are what the user says.
Value chosenOutside(Call &call, Row &row, const Given &given) {
  const Value object = argument(given, 0), held = behind(call, object);
  if (!is(object, ValueKind::Address) || !is(held, ValueKind::Record))
    return object;
  chooseAttributes(call.machine, row, object->address, 0);
  return object;
}

// fields(object): the names of the fields that its class declares, those of classes behind it first.
Value fieldNames(Call &call, Row &row, const Given &given) {
  const Value held = behind(call, argument(given, 0));
  std::vector<Value> names;
  const std::function<void(Name)> add = [&](Name id) {
    const Type *type = call.machine.program.type(id);
    for (const Name base : type ? type->bases : std::vector<Name>())
      add(base);
    for (const Field &field : type ? type->fields : std::vector<Field>())
      names.push_back(scalarValue(textTerm(field.name)));
  };
  if (!is(held, ValueKind::Record))
    return unknownValue();
  add(held->type);
  return listOf(call, row, std::move(names));
}

// apart(function, ..): runs it for what it may find, and forgets what it leaves: when it is run is not known.
Value runApart(Call &call, Row &row, const Given &given) {
  Given rest = given;
  rest.positional.erase(rest.positional.begin());
  Row apart = row;
  apart.guessed = true;
  Call inner{call.machine, call.frame, apart, call.fact, call.first};
  callValue(inner, apart, argument(given, 0), rest, given.positional.front());
  return nullValue();
}

Value nothingKnown(Call &, Row &, const Given &) { return unknownValue(); }

// is_tensor(value): is it one for certain? What the program has not shown to be one may be an array.
Value isKnownTensor(Call &, Row &, const Given &given) {
  return scalarValue(intTerm(is(argument(given, 0), ValueKind::Tensor)));
}

// is_newer(installed, asked): of two versions, one of which is written. Who asks for one has most likely a
// newer one.
Value isNewer(Call &call, Row &row, const Given &given) {
  const bool isKnown = textOf(call, argument(given, 0)).has_value();
  if (isKnown == textOf(call, argument(given, 1)).has_value())
    return unknownValue();
  row.guessed = true;
  return scalarValue(intTerm(!isKnown));
}

// file(name): what is in one of which nothing is known is decided outside: texts, numbers, and what holds
// these.
Value givenOutside(Call &call, Row &, const Given &) {
  return openValue(applyTerm(writtenInFile, {call.machine.freshScalar(call)}), "file", 0, numberType);
}

// A number or numbers: what a tensor is made of there is on the CPU.
Value somethingOnHost(Call &, Row &, const Given &) { return valueOfHost(); }

} // namespace

std::optional<Outcomes> callPrimitive(Call &call, Row &row, const std::string &name, const Given &given) {
  if (name == "file")
    if (const auto path = textOf(call, argument(given, 0)))
      if (const Value data = row.store.get(rootOfFile(call, *path)))
        return callValue(call, row, data, {}, {});
  static const std::map<std::string, Primitive> primitives = {{"moved", moveAll},
                                                              {"move", moveEntries},
                                                              {"own", ownParameters},
                                                              {"run", runModule},
                                                              {"together", keepTogether},
                                                              {"are_together", areTogether},
                                                              {"keeper", makeKeeper},
                                                              {"step", stepKeeper},
                                                              {"device_of_map", deviceOfMap},
                                                              {"spread", spreadModule},
                                                              {"is_spread", isSpread},
                                                              {"launched", isLaunched},
                                                              {"has_file", hasFile},
                                                              {"chosen", chosenOutside},
                                                              {"layer", placeLayerOf},
                                                              {"output", outputOf},
                                                              {"save", save},
                                                              {"saved", saved},
                                                              {"has_ranks", hasRanksOf},
                                                              {"fields", fieldNames},
                                                              {"apart", runApart},
                                                              {"unknown", nothingKnown},
                                                              {"file", givenOutside},
                                                              {"on_host", somethingOnHost},
                                                              {"is_tensor", isKnownTensor},
                                                              {"is_newer", isNewer},
                                                              {"join", joinRanks},
                                                              {"leave", leaveRanks},
                                                              {"joined", areJoined},
                                                              {"backend", backendOfRanks},
                                                              {"exchange", exchangeTensors},
                                                              {"rank", rankIn},
                                                              {"on_gpus", meetOnGpus},
                                                              {"own_gpu", takeOwnGpu},
                                                              {"unmapped", noteUnmappedLoad}};
  const auto found = primitives.find(name);
  if (found == primitives.end())
    return std::nullopt;
  Row after = row;
  Value result = found->second(call, after, given);
  return done(after, std::move(result));
}

} // namespace devicetidy::python
