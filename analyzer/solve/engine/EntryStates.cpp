#include "analyzer/solve/engine/EntryStates.h"

#include "analyzer/facts/Language.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/ClassBodies.h"
#include "analyzer/solve/engine/Evidence.h"
#include "analyzer/solve/engine/Library.h"

#include <algorithm>

namespace devicetidy {
namespace {

// The first step of a parameter's history is its declaration.
Value located(const Value &value, Location where) {
  if (!value->history)
    return value;
  Step step = value->history->step;
  step.where = where;
  return withHistory(value, extend(nullptr, step));
}

// The run of a module that the rest of the program follows: one to its end, with a GPU.
Outcome &mostTelling(Outcomes &outcomes) {
  const auto tellsMore = [](const Outcome &a, const Outcome &b) {
    const auto rank = [](const Row &row) {
      return std::pair(hasRaised(row), row.numberOf(scalarValue(availableTerm())) == 0);
    };
    return rank(a.row) < rank(b.row);
  };
  return *std::min_element(outcomes.begin(), outcomes.end(), tellsMore);
}

} // namespace

EntryStates::EntryStates(Machine &machine, const Usage &usage)
    : machine(machine), usage(usage), processes(machine) {
  runGlobals();
  running = base;
  forgetChanged(running);
}

void EntryStates::runGlobals() {
  for (Name id : machine.program.globalInits)
    if (const Function *function = machine.program.function(id)) {
      if (isPython(function->where.file.view()))
        beforeModule.emplace(function->where.file, base);
      machine.beginEntry(base.store, true);
      Frame frame{*function};
      Row start = base;
      processes.enter(start, base, function->where.file);
      Outcomes outcomes = machine.run(frame, std::move(start));
      if (outcomes.empty())
        continue;
      Row left = std::move(mostTelling(outcomes).row);
      processes.keep(function->where.file, base, left);
      base = std::move(left);
      // What a handler has made is there for all that runs later.
      base.known.erase(std::remove(base.known.begin(), base.known.end(), raisedCondition()),
                       base.known.end());
      machine.memory.dropLocals(base, 0);
      base.registers.clear();
      base.expressionEnded = false;
    }
}

const Row &EntryStates::ofMain(const Function &main) const {
  const auto found = beforeModule.find(main.where.file);
  return found == beforeModule.end() ? base : found->second;
}

// A function that no main leads to is called in a program that has run: what is changed somewhere may have
// been. Of an object whose fields are changed one by one, the others are as its initialiser left them.
void EntryStates::forgetChanged(Row &row) {
  std::vector<Name> ids; // in order of text: roots are numbered as they are met
  ids.reserve(machine.program.globals.size());
  for (const auto &[id, global] : machine.program.globals)
    ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (Name id : ids) {
    const Global &global = machine.program.globals.at(id);
    const bool isFixed = global.isConst && machine.types.classOf(global.type) == TypeClass::Device;
    const bool isReplaced = !isFixed && usage.writtenGlobals.count(id) != 0;
    if (!isReplaced && !changesInside(global.type))
      continue;
    const RootId root = machine.memory.global(id, global.type, global.name);
    const Name flag(id.str() + std::string(initialisedSuffix));
    const bool isStaticLocal = usage.staticFlags.count(flag) != 0;
    const Value held = row.store.get(root);
    if (isReplaced || (!isStaticLocal && !(held && is(held, ValueKind::Record))))
      row.store.erase(root);
    else if (!isStaticLocal)
      forgetWritten(row, root);
    if (isStaticLocal)
      row.store.set(machine.memory.global(flag, "bool", flag), scalarValue(intTerm(isReplaced)));
  }
  // A static local is initialised when an entry comes to it; it may have been used since.
  machine.initialisedStatic = [this](Row &initialised, Name id) {
    const auto global = machine.program.globals.find(id);
    if (global == machine.program.globals.end())
      return;
    const RootId root = machine.memory.global(id, global->second.type, global->second.name);
    forgetWritten(initialised, root);
  };
}

bool EntryStates::changesInside(Name type) const {
  const Type *record = machine.program.type(type);
  return record && record->isProject &&
         std::any_of(record->fields.begin(), record->fields.end(),
                     [&](const Field &field) { return usage.writtenFields.count(field.name) != 0; });
}

Row EntryStates::bindParameters(const Function &function, Row row) {
  for (std::uint32_t i = 0; i < function.paramCount; ++i) {
    const Variable &parameter = function.locals[i];
    const Term origin = applyTerm(op::parameter, {textTerm(Name(machine.entryCall)), intTerm(i)});
    const RootId root = machine.memory.local(0, i, parameter);
    Value value =
        parameter.isReference
            ? addressValue({machine.memory.outside(origin, parameter.type, parameter.name), nullptr})
            : machine.memory.symbolic(parameter.type, origin, parameter.name);
    row.store.set(root, located(value, parameter.where));
  }
  return row;
}

Address EntryStates::object(Name className) {
  return {machine.memory.outside(applyTerm(op::self, {textTerm(className)}), className, "this"), nullptr};
}

// A class of Python without a constructor of its own has that of the first class behind it.
std::vector<Name> EntryStates::constructorsOf(Name className) const {
  std::vector<Name> behind{className}; // with the class itself; some seem to be behind themselves
  for (std::size_t i = 0; i < behind.size(); ++i) {
    const Type *type = machine.program.type(behind[i]);
    if (!type)
      continue;
    if (!type->constructors.empty() || !isPython(type->where.file.view()))
      return type->constructors;
    for (Name base : type->bases)
      if (std::find(behind.begin(), behind.end(), base) == behind.end())
        behind.push_back(base);
  }
  return {};
}

// The object before its constructor is run, with the attributes of its class.
std::vector<Row> EntryStates::begun(Name className) {
  std::vector<Row> rows{running};
  rows.front().store.set(object(className).root, recordValue(className));
  for (const Function *body : classBodies(machine, className)) {
    std::vector<Row> next;
    for (Row &before : rows)
      for (Outcome &outcome : call(*body, std::move(before), object(className))) {
        machine.memory.dropLocals(outcome.row, 0);
        outcome.row.registers.clear();
        next.push_back(std::move(outcome.row));
      }
    rows = std::move(next);
  }
  return rows;
}

std::vector<Row> EntryStates::construct(Name className) {
  std::vector<Row> rows;
  const Type *type = machine.program.type(className);
  if (!type)
    return rows;
  const std::vector<Row> objects = begun(className);
  for (Name id : constructorsOf(className)) {
    const Function *constructor = machine.program.function(id);
    if (!constructor || !constructor->hasBody || isCompanion(id))
      continue;
    machine.memory.choices.constructing = className;
    for (const Row &before : objects)
      for (Outcome &outcome : call(*constructor, before, object(className))) {
        machine.memory.dropLocals(outcome.row, 0);
        outcome.row.registers.clear();
        rows.push_back(std::move(outcome.row));
      }
    machine.memory.choices.constructing = {};
  }
  for (Name id : type->methods)
    addMade(className, id, rows);
  const Value plain = objects.empty() ? nullptr : objects.front().store.get(object(className).root);
  const bool isPlain = isPython(type->where.file.view()) && constructorsOf(className).empty();
  if (rows.empty() && plain && (isPlain || !plain->fields.empty())) // attributes of its class are all it has
    rows = objects;
  if (rows.empty() && type->constructors.empty() && isOfLibraryModule(*type)) {
    const Address self = object(className);
    Row row = running;
    row.store.set(self.root, recordValue(className, {{hidden::parameters,
                                                      tensorValue(Placement::cpu(), someRank, nullptr)}}));
    rows.push_back(std::move(row));
  }
  return rows;
}

namespace {

bool isMadeForGiven(const Value &value) {
  return (is(value, ValueKind::Tensor) && isOutside(value->placement)) ||
         std::any_of(value->fields.begin(), value->fields.end(),
                     [](const auto &field) { return isMadeForGiven(field.second); });
}

} // namespace

// What a function of the class itself makes where its caller's tensors are is an object as a constructor
// makes it. Other objects, and modules, are moved by whoever has them made.
void EntryStates::addMade(Name className, Name id, std::vector<Row> &rows) {
  const Function *maker = machine.program.function(id);
  if (!maker || !maker->isStatic || !maker->hasBody || maker->isModel || machine.types.isModule(className))
    return;
  for (Outcome &outcome : call(*maker, running, {})) {
    const Value made = is(outcome.result, ValueKind::Address) && !outcome.result->address.path
                           ? outcome.row.store.get(outcome.result->address.root)
                           : outcome.result;
    if (!made || !is(made, ValueKind::Record) || made->type != className || made->origin ||
        !isMadeForGiven(made))
      continue;
    machine.memory.dropLocals(outcome.row, 0);
    outcome.row.registers.clear();
    outcome.row.store.set(object(className).root, made);
    rows.push_back(std::move(outcome.row));
  }
}

// Does it derive from a module of the library that has parameters?
bool EntryStates::isOfLibraryModule(const Type &type) const {
  return std::any_of(type.bases.begin(), type.bases.end(), [&](Name base) {
    const Type *known = machine.program.type(base);
    return known && !known->isProject && base != Name("torch::nn::Module") && machine.types.isModule(base);
  });
}

namespace {

// `module` with the parameters that nobody has moved on `device`; of those a loop has made, each.
Value releasedTo(const Value &module, const Placement &device) {
  if (is(module, ValueKind::List)) {
    ValueData all = *module;
    for (auto *values : {&all.elements, &all.summary})
      for (Value &each : *values)
        each = releasedTo(each, device);
    return makeValue(std::move(all));
  }
  Value released = module;
  for (const auto &[name, field] : module->fields)
    if (hidden::isParameter(name) && is(field, ValueKind::Tensor) &&
        field->placement.kind == PlacementKind::Cpu && !module->fields.count(hidden::moved))
      released = withField(released, name, tensorValue(device, field->rank, field->history));
  return released;
}

} // namespace

void EntryStates::release(Row &row, RootId heap, Term origin) {
  const Term index = applyTerm(op::deviceOfParameter, {origin, intTerm(heap)});
  row.store.set(heap, releasedTo(row.store.get(heap),
                                 Placement::symbol(SymbolRole::Module, index, "the module's device")));
}

void EntryStates::forgetWritten(Row &row, RootId root) {
  const Name type = machine.memory.info(root).type;
  forget(row, root, [&](Name field) { return isWrittenLater(machine.program, usage, type, field); }, true);
}

namespace {

// Where the program has put the parameters of a module, and of the modules in it: on GPUs, and on which of
// the devices that somebody chooses.
struct Placed {
  bool onGpus = false;
  bool oneByOne = false; ///< each on a device of its own
  std::set<Term> chosen;
  std::set<RootId> seen;
};

// Has to() brought it to a GPU? A tensor there among parameters on the CPU says nothing: whoever uses the
// module moves them all.
bool isOnGpus(const Value &module) {
  bool areAllThere = true, isAnyThere = false;
  for (const auto &[name, field] : module->fields) {
    const bool isThere = field->placement.kind == PlacementKind::Cuda;
    if (name == hidden::moved && isThere)
      return true;
    isAnyThere |= hidden::isParameter(name) && isThere;
    areAllThere &= !hidden::isParameter(name) || isThere;
  }
  return isAnyThere && areAllThere;
}

// `depth`: of modules around it. What the modules of a module do with their own parts is not for the whole.
void addPlaced(const Row &row, const Value &module, Placed &placed, unsigned depth = 0,
               bool isOfList = false) {
  placed.onGpus |= depth < 2 && isOnGpus(module);
  for (const auto &[name, field] : module->fields) {
    if (hidden::isParameter(name)) {
      const Placement &there = field->placement;
      if (there.kind == PlacementKind::Symbol && there.role == SymbolRole::DeviceChoice) {
        if (!isOfList)
          placed.chosen.insert(there.index);
        else
          placed.oneByOne |= applies(there.index, op::element);
      }
    }
    forEachAddress(field, [&](const Address &address) {
      if (const Value held = row.store.get(address.root); held && placed.seen.insert(address.root).second)
        addPlaced(row, held, placed, depth + is(held, ValueKind::Record),
                  isOfList || is(held, ValueKind::List));
    });
  }
  for (const Value &each : module->summary)
    addPlaced(row, each, placed, depth, true);
}

// Nobody moves as a whole what the program has spread, or put on a GPU.
bool isPlaced(const Row &row, RootId root) {
  Placed placed;
  placed.seen.insert(root);
  if (const Value module = row.store.get(root))
    addPlaced(row, module, placed);
  return placed.onGpus || placed.oneByOne || placed.chosen.size() > 1;
}

} // namespace

void EntryStates::moveAsWhole(Row &row, RootId root) {
  const RootInfo &info = machine.memory.info(root);
  if (!machine.types.isModule(info.type) || isPlaced(row, root))
    return;
  const Placement placement = Placement::symbol(
      SymbolRole::Module, applyTerm(op::deviceOfParameter, {info.origin}), "the module's device");
  machine.library.hooks.moveModule(machine, row, {root, nullptr}, placement, nullptr);
}

namespace {

// Members that are not registered, though others are: who moves the object leaves them behind.
std::set<RootId> leftUnregistered(const Value &object) {
  std::set<RootId> members, registered;
  for (const auto &[name, field] : object->fields)
    if (is(field, ValueKind::Address) && (hidden::isSubmodule(name) || !hidden::isHidden(name)))
      (hidden::isSubmodule(name) ? registered : members).insert(field->address.root);
  if (registered.empty())
    return {};
  for (const RootId each : registered)
    members.erase(each);
  return members;
}

} // namespace

void EntryStates::forget(Row &row, RootId root, const std::function<bool(Name)> &isChanged,
                         bool handsOutModules) {
  const Term origin = machine.memory.info(root).origin;
  std::vector<RootId> untouched;
  Value object = row.store.get(root);
  if (!object || !is(object, ValueKind::Record))
    return;
  moveAsWhole(row, root);
  object = row.store.get(root);
  const Type *type = machine.program.type(machine.memory.info(root).type);
  const bool isOfPython = type && isPython(type->where.file.view()); // modules that a loop has made, too
  // Modules its constructor made and did not move may be moved by whoever the object hands them to.
  row.store.forEach(RootKind::Heap, [&](RootId heap, const Value &held) {
    if (is(held, ValueKind::Record) || (isOfPython && is(held, ValueKind::List)))
      untouched.push_back(heap);
  });
  const bool isForOthers = type && !isOfPython && !isMadeHereOnly(type->constructors);
  const std::set<RootId> left = isForOthers ? leftUnregistered(object) : std::set<RootId>();
  if (handsOutModules)
    for (RootId heap : untouched)
      if (left.count(heap) == 0)
        release(row, heap, origin);
  ValueData data = *object;
  data.origin = origin;
  data.function = "this";
  for (auto field = data.fields.begin(); field != data.fields.end();)
    field = isChanged(field->first) ? data.fields.erase(field) : std::next(field);
  row.store.set(root, makeValue(std::move(data)));
}

// Of a class that no other unit sees, or can make, the calls in this one are all that there are.
bool EntryStates::isMadeHereOnly(const std::vector<Name> &constructors) const {
  return std::any_of(constructors.begin(), constructors.end(), [&](Name id) {
    const Function *constructor = machine.program.function(id);
    return constructor && constructor->isPrivate;
  });
}

RootId EntryStates::reset(Row &row, Name id) {
  const Global &global = machine.program.globals.at(id);
  const Name flag(id.str() + std::string(initialisedSuffix));
  const RootId root = machine.memory.global(id, global.type, global.name);
  auto restore = [&](RootId each) {
    if (const Value value = base.store.get(each))
      row.store.set(each, value);
    else
      row.store.erase(each);
  };
  restore(root);
  if (usage.staticFlags.count(flag))
    restore(machine.memory.global(flag, "bool", flag));
  return root;
}

Outcomes EntryStates::call(const Function &function, Row row, Address self, unsigned call) {
  // What a constructor makes, all methods of the class are run on: it may cost what a program's start may.
  machine.beginEntry(row.store, function.isMain || function.isConstructor);
  // Guards and set_device calls on the way are followed; what a caller outside has made current is not known.
  machine.currentDeviceIsOpen =
      !function.isMain && (usage.setsDevice || usage.underGuard.count(function.id) != 0);
  // A library calls lambdas, and somebody outside goes the ways that no caller in the program goes.
  machine.entryIsCalled = !function.isLambda && !machine.otherwise && usage.called.count(function.id) != 0;
  machine.entryCall = function.id.str() + (call > 0 ? "@" + std::to_string(call) : std::string());
  machine.broughtTo.clear();
  machine.movedUnder.clear();
  machine.moves.clear();
  machine.met.clear();
  machine.movedFrom.clear();
  machine.unpacked.clear();
  Frame frame{function};
  frame.self = self;
  processes.enter(row, base, function.where.file);
  row = bindParameters(function, std::move(row));
  const Store before = row.store;
  frame.before = &before;
  return machine.run(frame, std::move(row));
}

bool EntryStates::callClosure(const Function &function) {
  const auto made = machine.closures.find(&function);
  if (made == machine.closures.end())
    return false;
  const Value callable = made->second.callable;
  bool isOfCaller = false; // by reference: it is gone when others call
  for (const auto &[name, captured] : callable->fields)
    forEachAddress(captured,
                   [&](const Address &address) { isOfCaller |= kindOf(address.root) == RootKind::Local; });
  if (isOfCaller)
    return false;
  Row row = made->second.row;
  std::vector<RootId> locals;
  row.store.forEach(RootKind::Local, [&](RootId root, const Value &) { locals.push_back(root); });
  for (RootId root : locals)
    row.store.erase(root);
  row.registers.clear();
  row.expressionEnded = false;
  row.iterations = nullptr;
  const Name type("closure");
  const Address self{machine.memory.outside(applyTerm(op::self, {textTerm(function.id)}), type, type),
                     nullptr};
  row.store.set(self.root, callable);
  for (const auto &[name, captured] : callable->fields) // a module has been moved since it made the closure
    forEachAddress(captured, [&](const Address &address) {
      if (kindOf(address.root) == RootKind::Outside)
        moveAsWhole(row, address.root);
    });
  call(function, std::move(row), self);
  return true;
}

} // namespace devicetidy
