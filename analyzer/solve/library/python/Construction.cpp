//===- Construction.cpp - objects of classes and modules -----------------===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Hashing.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/Options.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/ClassBodies.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/python/Words.h"
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/solve/library/torch/Modules.h"

#include <algorithm>
#include <array>
#include <optional>

namespace devicetidy::python {

namespace {

struct Made {
  Row row;
  Value object;
};

// An object of `type` that `bodies` have been run on, apart from the variables of who asks, by each of their
// ways.
std::vector<Made> madeApart(Machine &machine, Row row, Name type,
                            const std::vector<const Function *> &bodies) {
  const Term origin = applyTerm(op::self, {textTerm(Name("a new " + type.str()))});
  const Address object{machine.memory.outside(origin, type, type), nullptr};
  machine.memory.dropLocals(row, 0);
  row.registers.clear();
  row.store.set(object.root, recordValue(type));
  std::vector<Row> rows{std::move(row)};
  for (const Function *body : bodies) {
    std::vector<Row> left;
    for (Row &each : rows) {
      Frame frame{*body};
      frame.self = object;
      for (Outcome &outcome : machine.run(frame, std::move(each)))
        left.push_back(std::move(outcome.row));
    }
    rows = std::move(left);
  }
  std::vector<Made> made;
  for (Row &each : rows) {
    const Value held = each.store.get(object.root);
    made.push_back({std::move(each), held});
  }
  return made;
}

} // namespace

// The bodies of a class are run once for the values that they can come upon: most name no variables, and the
// members of an enumeration are asked for many thousand times.
Value attributeOfClass(Machine &machine, const Row &row, Name type, Name attribute) {
  const std::vector<const Function *> bodies = classBodies(machine, type);
  std::uint64_t key = textHash(type);
  for (const Function *body : bodies)
    key = mix(key, machine.restrict(row, *body, {}).store.digest());
  Row before;
  before.store = row.store;
  for (const auto &[term, number] : row.known)
    if (term == availableTerm() || mentionsOption(term)) { // the same when they were run
      before.assume(term, number);
      key = mix(key, mix(term->hash, static_cast<std::uint64_t>(number)));
    }
  // It is there while the bodies run, which may ask, too.
  if (machine.attributesOf.try_emplace(key).second) {
    if (const std::vector<Made> made = madeApart(machine, std::move(before), type, bodies);
        made.size() == 1) {
      std::map<Name, Value> attributes = made.front().object->fields;
      for (auto &[name, held] : attributes)
        if (is(held, ValueKind::Address))
          held = machine.memory.read(made.front().row, held->address);
      machine.attributesOf[key] = std::move(attributes);
    }
  }
  const std::map<Name, Value> &known = machine.attributesOf[key];
  const auto found = known.find(attribute);
  return found == known.end() ? nullptr : found->second;
}

namespace {

// An object of `type` as its constructor leaves it, whatever it is given, by each of its ways.
const std::vector<Value> &asConstructed(Machine &machine, const Row &row, Name type) {
  const Function *constructor = findMethod(machine, type, "__init__");
  // It is there while the constructor runs, which may ask, too.
  if (machine.madeObjects.try_emplace(type).second && constructor) {
    std::vector<Value> objects;
    for (const Made &made : madeApart(machine, row, type, {constructor}))
      objects.push_back(made.object);
    machine.madeObjects[type] = std::move(objects);
  }
  return machine.madeObjects[type];
}

// The class of the module that `object` has as `name`; none for what is no module.
Name moduleHeld(const Machine &machine, const Value &object, Name name) {
  const auto held = object->fields.find(name);
  const bool isObject =
      held != object->fields.end() && is(held->second, ValueKind::Address) && !held->second->address.path;
  const Name type = isObject ? machine.memory.info(held->second->address.root).type : Name();
  return machine.types.isModule(type) ? type : Name();
}

} // namespace

Value keptOnCpu(Machine &machine, const Row &row, Name type, Name attribute) {
  if (isWrittenLater(machine.program, machine.usage, type, attribute) ||
      !machine.types.derivedFrom(type).empty())
    return nullptr;
  const std::vector<Value> &made = asConstructed(machine, row, type);
  if (made.size() != 1)
    return nullptr;
  const Value &object = made.front();
  const auto field = object->fields.find(attribute);
  const bool isOnCpu = field != object->fields.end() && is(field->second, ValueKind::Tensor) &&
                       !field->second->address.valid() && field->second->placement == Placement::cpu() &&
                       !object->fields.count(Name(bufferMark + attribute.str()));
  return isOnCpu ? field->second : nullptr;
}

Value partOfGiven(Machine &machine, const Row &row, const Value &object, const std::string &name) {
  if (!object->origin || !applies(object->origin, op::pointee) || !machine.types.isModule(object->type))
    return nullptr;
  std::set<Name> types;
  for (const Value &each : asConstructed(machine, row, object->type))
    types.insert(moduleHeld(machine, each, Name(name)));
  if (types.size() != 1 || types.begin()->empty())
    return nullptr;
  const Name type = *types.begin();
  const Value open = attributeOfGiven(object, name);
  if (!machine.types.isProject(type))
    return typed(open, moduleType);
  return addressValue(
      {machine.memory.outside(applyTerm(op::pointee, {open->origin}), type, open->function), nullptr});
}

namespace {

// The fields of a class without __init__: a dataclass, a named tuple. What ** brings that is not known may
// set any.
void setFields(Call &call, Row &row, Name type, const Address &where, const Given &given) {
  const Type *known = call.machine.program.type(type);
  const bool setsAny = given.namedRest || given.find(anyOption);
  for (std::size_t i = given.positional.size(); known && setsAny && i < known->fields.size(); ++i) {
    const Address field = where.field(known->fields[i].name);
    const Term open =
        applyTerm(op::member, {call.machine.freshScalar(call), textTerm(known->fields[i].name)});
    const bool isScalar = is(call.machine.memory.read(row, field), ValueKind::Scalar); // by default
    const Value chosen = optionOf(known->fields[i].name.str(), open);
    call.machine.memory.write(row, field, isScalar ? chosen : withIdentity(open));
  }
  for (std::size_t i = 0; known && i < given.positional.size() && i < known->fields.size(); ++i)
    call.machine.memory.write(row, where.field(known->fields[i].name), given.positional[i].value);
  for (const auto &[name, argument] : given.named)
    if (name.view() != anyOption)
      call.machine.memory.write(row, where.field(name), argument.value);
}

bool isEnumeration(const Types &types, Name type) {
  const auto isBase = [&](const char *base) { return types.derivesFrom(type, base); };
  constexpr std::array bases = {"python:enum.Enum", "python:enum.IntEnum", "python:enum.StrEnum",
                                "python:enum.Flag", "python:enum.IntFlag"};
  return std::any_of(bases.begin(), bases.end(), isBase);
}

// Tells the objects among the attributes of a class under which names they are there.
Row withNamedDescriptors(Call &call, Row row, const Value &made, const Address &object) {
  const Value record = call.machine.memory.read(row, object);
  for (const auto &[name, value] : record->fields)
    if (const Function *method = methodOfDescriptor(call.machine, row, value, "__set_name__")) {
      Given given;
      given.positional = {{made, {}}, {scalarValue(textTerm(name)), {}}};
      if (Outcomes named = callFunction(call, row, *method, nullptr, value->address, given); !named.empty())
        row = std::move(named.front().row);
    }
  return row;
}

} // namespace

// A new object of the class `made` of the program: attributes of the class, then __init__.
Outcomes constructObject(Call &call, Row row, const Value &made, const Given &given) {
  Machine &machine = call.machine;
  const Name type(made->type.view().substr(classPrefix.size()));
  if (given.positional.size() == 1 && isEnumeration(machine.types, type))
    return done(row, given.positional[0].value); // of the member, which is its value here
  const Address where = machine.allocate(row, call.frame, call.fact, type);
  std::map<Name, Value> fields = made->fields; // what the class has captured
  for (const char *base :
       {"python:builtins.dict", "python:collections.OrderedDict", "python:collections.UserDict"})
    if (machine.types.derivesFrom(type, base))
      fields[dictField] = scalarValue(intTerm(1));
  machine.memory.write(row, where, recordValue(type, std::move(fields)));
  Outcomes outcomes = done(row, addressValue(where));
  const auto run = [&](const Function *function, const Given &with) {
    Outcomes next;
    for (Outcome &before : outcomes)
      for (Outcome &after : callFunction(call, std::move(before.row), *function, nullptr, where, with))
        next.push_back({std::move(after.row), addressValue(where)});
    outcomes = std::move(next);
  };
  for (const Function *body : classBodies(machine, type))
    run(body, {});
  for (Outcome &outcome : outcomes)
    outcome.row = withNamedDescriptors(call, std::move(outcome.row), made, where);
  if (const Function *constructor = findMethod(machine, type, "__init__"))
    run(constructor, given);
  else if (const Name base = libraryModule(machine, type); !base.empty())
    outcomes = constructBase(call, std::move(outcomes.front().row), where, base, given);
  else
    for (Outcome &outcome : outcomes)
      setFields(call, outcome.row, type, where, given);
  if (const Function *behind = findMethod(machine, type, "__post_init__"))
    run(behind, {});
  return outcomes;
}

void registerEntry(Call &call, Row &row, const Address &module, Name field, const Value &entry) {
  Machine &machine = call.machine;
  const std::string key(field.view().substr(1, field.view().size() - 2));
  if (is(entry, ValueKind::Address) &&
      machine.types.isModule(machine.memory.read(row, entry->address)->type)) {
    Call inner{machine, call.frame, row, call.fact, call.first};
    appendChild(inner, module, entry->address, key);
    machine.memory.write(row, module.field(Name(hidden::submodule(key))), entry);
  } else if (is(entry, ValueKind::Tensor)) {
    const Value held = entry->address.valid() ? machine.memory.read(row, entry->address) : entry;
    machine.memory.write(row, module.field(Name(hidden::parameter(key))), held);
    const Value handle = parameterHandle(module.field(Name(hidden::parameter(key))), entry->rank);
    machine.memory.write(row, module.field(field), handle);
    if (entry->address.valid())
      machine.memory.write(row, entry->address, handle);
  }
}

namespace {

// ModuleDict, ParameterDict, and Sequential of an OrderedDict: each entry is registered under its key.
Outcomes constructNamed(Call &call, Row row, const std::string &name, const Value &entries) {
  Machine &machine = call.machine;
  const Name type("torch::nn::" + name + "Impl");
  const Address where = machine.allocate(row, call.frame, call.fact, type);
  machine.memory.write(row, where, recordValue(type));
  for (const Name field : fieldsInOrder(entries))
    registerEntry(call, row, where, field, entries->fields.at(field));
  return done(row, addressValue(where));
}

} // namespace

Name libraryModule(const Machine &machine, Name type) {
  const Type *known = machine.program.type(type);
  if (!machine.types.isModule(type) || type == Name("torch::nn::Module"))
    return {};
  if (!known || !known->isProject)
    return type;
  for (Name base : known->bases)
    if (const Name found = base == type ? Name() : libraryModule(machine, base); !found.empty())
      return found;
  return {};
}

Outcomes constructBase(Call &call, Row row, const Address &self, Name base, const Given &given) {
  std::string_view name = base.view();
  name.remove_prefix(std::min(name.size(), std::string_view("torch::nn::").size()));
  name.remove_suffix(std::min(name.size(), std::string_view("Impl").size()));
  Outcomes outcomes = constructModule(call, std::move(row), std::string(name), given);
  for (Outcome &outcome : outcomes) {
    const Value made = is(outcome.result, ValueKind::Address)
                           ? call.machine.memory.read(outcome.row, outcome.result->address)
                           : unknownValue();
    for (const auto &[field, value] : made->fields)
      call.machine.memory.write(outcome.row, self.field(field), value);
    outcome.result = addressValue(self);
  }
  return outcomes;
}

void appendSome(Call &call, Row &row, const Address &container, const Value &list) {
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  const bool isList = is(list, ValueKind::List) && isSummary(list);
  for (const Value &each : isList ? list->summary : std::vector<Value>{list})
    if (is(each, ValueKind::Address) && isList)
      appendChild(inner, container, each->address, "", true);
    else if (isOpen(each)) // modules, or one, that a caller passes
      appendChild(inner, container, call.machine.allocate(row, call.frame, call.fact, "torch::nn::Module"),
                  "", true);
}

Outcomes constructModule(Call &call, Row row, const std::string &name, const Given &named) {
  Machine &machine = call.machine;
  const Given given = withDefaultDevice(call, row, named);
  const Name type("torch::nn::" + name + "Impl");
  const Value only = given.positional.size() == 1 ? behind(call, given.positional[0].value) : missing();
  if (is(only, ValueKind::Record) && only->type == dictType)
    return constructNamed(call, std::move(row), name, only);
  if (name == "ParameterList" && is(only, ValueKind::List)) {
    std::map<Name, Value> entries;
    if (isSummary(only) && !only->summary.empty())
      entries[anyEntryField] = only->summary.front();
    for (std::size_t i = 0; i < only->elements.size(); ++i)
      entries[*keyField(row, scalarValue(intTerm(std::int64_t(i))))] = only->elements[i];
    return constructNamed(call, std::move(row), name, recordValue(dictType, std::move(entries)));
  }
  if (isOneOf(name, {"ParameterList", "ParameterDict"}))
    return given.positional.empty() ? constructNamed(call, std::move(row), name, recordValue(dictType))
                                    : done(row, given.positional[0].value);
  // A list of modules is given as its elements.
  std::vector<Argument> args;
  const Value some = given.rest ? behind(call, given.rest) : only; // as many as a comprehension has made
  if (is(only, ValueKind::List))
    for (const Value &element : only->elements)
      args.push_back({element, {}, given.positional[0].text, given.positional[0].written});
  else
    for (const Argument &argument : given.positional)
      args.push_back({argument.value, {}, argument.text, argument.written});
  for (const auto &[keyword, argument] : given.named)
    if (keyword.view() == "weight" || keyword.view() == "pos_weight")
      args.push_back(argument);
  const Address where = machine.allocate(row, call.frame, call.fact, type);
  Outcomes outcomes;
  for (Row &made : machine.construct(call.frame, call.fact, std::move(row), type, where, args)) {
    if (isOneOf(name, {"ModuleList", "Sequential"}))
      appendSome(call, made, where, some);
    if (const Argument *device = given.find("device"); device && !is(device->value, ValueKind::Null)) {
      const Value on = asDevice(call, device->value);
      const Placement placement =
          is(on, ValueKind::Device) ? machine.concrete(made, on->placement) : Placement::unknown();
      moveModule(machine, made, where, placement,
                 machine.note(nullptr, StepKind::ModuleMade, call.fact.where, name, placement.describe()));
    }
    outcomes.push_back({std::move(made), addressValue(where)});
  }
  return outcomes;
}

} // namespace devicetidy::python
