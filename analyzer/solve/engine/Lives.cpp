#include "analyzer/solve/engine/Lives.h"

#include "analyzer/facts/Language.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/Answers.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Hashing.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/ClassBodies.h"
#include "analyzer/solve/engine/Drivers.h"
#include "analyzer/solve/engine/Library.h"

#include <algorithm>

namespace devicetidy {
namespace {

const std::map<Name, Value> &fieldsOf(const Value &state) {
  static const std::map<Name, Value> none;
  return state && is(state, ValueKind::Record) ? state->fields : none;
}

// What a value places, itself and by what it leads to.
std::uint64_t placesOf(const Row &row, const Value &value, std::set<RootId> &seen) {
  std::uint64_t hash = value->placeHash;
  forEachAddress(value, [&](const Address &address) {
    const Value held = row.store.get(address.root);
    if (held && seen.insert(address.root).second)
      hash = mix(hash, placesOf(row, held, seen));
  });
  return hash;
}

// Callers of what replaces a layer, as the head of a model, move the model then, or do it before they move
// it.
bool isOfModule(const Value &tensor) {
  const Step *step = decidingStep(tensor->history);
  return step && step->kind == StepKind::ModuleMade;
}

// Has a call made on the CPU anew what was where the module is, and moved nothing as a whole? Nobody moves
// the module again for a tensor.
bool isAnewOnCpu(const Leaves &before, const Leaves &now) {
  bool isAnew = false;
  for (const auto &[way, leaf] : now) {
    const auto old = before.find(way);
    const bool isOnCpu = leaf->placement.kind == PlacementKind::Cpu;
    if (is(leaf, ValueKind::Device) && isOnCpu)
      return false;
    isAnew |= old != before.end() && is(leaf, ValueKind::Tensor) && is(old->second, ValueKind::Tensor) &&
              isOnCpu && !isOfModule(leaf) && old->second->placement.kind == PlacementKind::Symbol &&
              old->second->placement.role == SymbolRole::Module;
  }
  return isAnew;
}

// Is it one that callers put an object on a device with? to() of a module may pass on what it is given.
bool isPlacer(const Types &types, const Function &method) {
  const std::string_view name = lastPart(method.name.view());
  return (isPython(method.where.file.view()) && (name == "to" || name == "cuda")) ||
         std::any_of(
             method.locals.begin(), method.locals.begin() + method.paramCount,
             [&](const Variable &parameter) { return types.classOf(parameter.type) == TypeClass::Device; });
}

} // namespace

void Lives::run(const std::vector<const Function *> &entries, const std::set<const Function *> &ofMain,
                const std::function<bool(const Function &)> &isDue) {
  std::set<const Function *> uncalled; // main may call what no call names, such as properties
  for (const Function *entry : entries)
    if (!ofMain.count(entry))
      uncalled.insert(entry);
  std::vector<Name> classes;
  std::vector<const Function *> free;
  std::map<Name, std::vector<const Function *>> methods;
  for (Name id : machine.program.order) {
    const Function *function = machine.program.function(id);
    const Name className = function->className;
    if (!function->isEntry || function->isModel || function->isConstructor || function->isDestructor ||
        function->isLambda || function->isMain || isClassBody(*function) || !usage.devicesMatter.count(id) ||
        !isDue(*function))
      continue;
    if (className.empty() || function->isStatic) {
      if (uncalled.count(function) || (!machine.types.isHidden(*function) && !ofMain.count(function)))
        free.push_back(function);
      continue;
    }
    if (!uncalled.count(function) && isConstructedBy(ofMain, className))
      continue;
    const auto [group, isNew] = methods.try_emplace(className);
    if (isNew)
      classes.push_back(className);
    if (uncalled.count(function) ||
        !machine.types.isHidden(*function)) // what it overrides may be called from outside
      group->second.push_back(function);
  }
  for (Name className : classes)
    runClass(className, methods[className]);
  for (const GlobalState &state : globalStates(
           machine.types, usage.staticFlags, free,
           [this](const Function &function) -> const std::set<Name> & { return mentionedIn(function); }))
    runGlobals(state);
}

bool Lives::isConstructedBy(const std::set<const Function *> &functions, Name className) const {
  const Type *type = machine.program.type(className);
  return type && std::any_of(type->constructors.begin(), type->constructors.end(),
                             [&](Name id) { return functions.count(machine.program.function(id)) != 0; });
}

Value Lives::stateIn(const Row &row) const {
  if (globals.empty())
    return row.store.get(object.root);
  std::map<Name, Value> held;
  for (const auto &[id, root] : globals)
    if (const Value value = row.store.get(root))
      held.emplace(id, value);
  return recordValue({}, std::move(held));
}

Leaves Lives::leaves(const Row &row) const {
  return leavesOf(row, stateIn(row), globals.empty() ? object.root : RootId());
}

void Lives::runClass(Name className, std::vector<const Function *> entries) {
  object = states.object(className);
  std::vector<const Function *> methods = publicMethods(className);
  const std::vector<const Function *> drivers = driversOf(machine, className);
  for (auto *each : {&entries, &methods})
    each->insert(each->begin(), drivers.begin(), drivers.end());
  Lived begun = begin(className);
  const auto hasLess = [&](const Life &a, const Life &b) {
    return leaves(a.row).size() < leaves(b.row).size();
  };
  if (!begun.empty())
    runSpread(std::max_element(begun.begin(), begun.end(), hasLess)->row, entries);
  Lived lives = initialise(std::move(begun), methods);
  factsRun = 0; // however long it took to set the object up, its methods are called
  follow(std::move(lives), entries, methods);
  forgetObject();
}

void Lives::forgetObject() {
  results.clear();
  factsRun = 0;
}

void Lives::runSpread(Row row, const std::vector<const Function *> &entries) {
  if (!machine.types.isModule(machine.memory.info(object.root).type) ||
      !machine.library.hooks.spreadModule(machine, row, object))
    return;
  machine.isSpread = true;
  for (const Function *entry : entries)
    states.call(*entry, row, object);
  machine.isSpread = false;
}

void Lives::runGlobals(const GlobalState &state) {
  Row row = states.open();
  for (Name id : state.globals)
    globals.emplace_back(id, states.reset(row, id));
  row.guessed = true;
  Lived lives;
  lives.push_back({std::move(row)});
  follow(initialise(std::move(lives), state.functions), state.functions, {});
  globals.clear();
  forgetObject();
}

void Lives::follow(Lived lives, const std::vector<const Function *> &entries,
                   const std::vector<const Function *> &methods) {
  for (Life &life : lives) {
    std::vector<std::pair<std::set<Name>, Life>> changed;
    std::set<const Function *> run;
    // What a driver has run is given what that gives it, and nothing else.
    const auto wasDriven = [&](const Function &method) {
      return machine.entered.count(&method) != 0 && isDriven(machine, method);
    };
    auto change = [&](const Function &method) {
      if (!run.insert(&method).second || wasDriven(method))
        return;
      for (const Life &after : call(method, life)) {
        std::set<Name> fields = changedFields(life.row, after.row);
        if (!fields.empty() && isWithin(changed.size() + 1, bounds::changesOfObject, Bound::ChangesOfObject))
          changed.emplace_back(std::move(fields), after);
      }
    };
    for (const Function *entry : entries)
      change(*entry);
    for (const Function *method : methods)
      if (isCalledLater(*method))
        change(*method);
    for (auto &[fields, after] : changed)
      for (const Function *entry : entries) {
        const std::set<Name> &read = mentionedIn(*entry);
        if (!wasDriven(*entry) && std::any_of(fields.begin(), fields.end(),
                                              [&, &of = read](Name field) { return of.count(field) != 0; }))
          call(*entry, after);
      }
  }
}

// What another method calls may be for the constructor, and nobody else calls it later, but for what starts
// again.
bool Lives::isCalledLater(const Function &method) const {
  return usage.calledBySiblings.count(method.id) == 0 ||
         models::hasRole(lastPart(method.name.view()), "starts_again");
}

// Those that change their object, of the class and its bases, in their order; an override hides what it
// overrides.
std::vector<const Function *> Lives::publicMethods(Name className) const {
  std::vector<const Function *> methods;
  const Type *type = machine.program.type(className);
  if (!type)
    return methods;
  for (Name base : type->bases) {
    const auto inherited = publicMethods(base);
    methods.insert(methods.end(), inherited.begin(), inherited.end());
  }
  const auto isOverridden = [&](const Function *inherited) {
    const Function *own = findMethod(machine, className, lastPart(inherited->name.view()));
    return own && own->className == className;
  };
  methods.erase(std::remove_if(methods.begin(), methods.end(), isOverridden), methods.end());
  for (Name id : type->methods) {
    const Function *method = machine.program.function(id);
    if (method && method->hasBody && !method->isModel && !method->isConst && !method->isStatic &&
        !machine.types.isHidden(*method) && !method->isConstructor && !method->isDestructor &&
        !method->isLambda && !isClassBody(*method) && usage.devicesMatter.count(id))
      methods.push_back(method);
  }
  return methods;
}

Lives::Lived Lives::begin(Name className) {
  auto isWrittenOutside = [&](Name field) {
    auto search = [&](const auto &self, Name type) -> bool {
      const Type *record = machine.program.type(type);
      return usage.writtenOutside.count({type, field}) != 0 ||
             (record && std::any_of(record->bases.begin(), record->bases.end(),
                                    [&](Name base) { return self(self, base); }));
    };
    return search(search, className);
  };
  Lived lives;
  for (Row &row : states.construct(className)) {
    states.forget(row, object.root, isWrittenOutside, handsOutModules(className));
    row.guessed = true;
    lives.push_back({std::move(row)});
  }
  return mostComplete(std::move(lives));
}

Lives::Lived Lives::initialise(Lived lives, std::vector<const Function *> methods) {
  std::set<const Function *> done;
  std::vector<const Function *> placers;
  for (const Function *method : methods)
    if (isPython(method->where.file.view()) && isPlacer(machine.types, *method))
      placers.push_back(method);
  methods.insert(methods.begin(), placers.begin(), placers.end()); // what was done is not done again
  std::set<Name> counts;
  // A second time, for one may need what another makes that stands after it.
  for (int round = 0; round < 2; ++round)
    for (const Function *method : methods) {
      if (done.count(method) || usage.calledBySiblings.count(method->id) || isDriven(machine, *method))
        continue; // others set it up with that
      Lived next;
      bool isInitialiser = false;
      for (Life &life : lives) {
        Lived after;
        for (const Life &each : call(*method, life))
          if (isInitialised(*method, life, each))
            after.push_back(each);
          else if (changedFields(life.row, each.row).empty())
            addCounts(life.row, each.row, counts);
        isInitialiser |= !after.empty();
        if (after.empty() || isUsedAsMade(*method, after))
          after.push_back(life);
        std::move(after.begin(), after.end(), std::back_inserter(next));
      }
      if (!isInitialiser)
        continue;
      done.insert(method);
      lives = mostComplete(std::move(next));
    }
  for (Life &life : lives)
    for (Name field : counts) {
      machine.memory.write(life.row, object.field(field), outsideNumber(field));
      life.number = 0;
    }
  return lives;
}

// Numbers that a call changes and nothing else: they count calls, and may be anything.
void Lives::addCounts(const Row &before, const Row &after, std::set<Name> &counts) const {
  if (!globals.empty())
    return;
  const Value stateBefore = stateIn(before), stateAfter = stateIn(after);
  const auto &old = fieldsOf(stateBefore);
  for (const auto &[name, value] : fieldsOf(stateAfter)) {
    const auto field = old.find(name);
    const Type *type =
        machine.program.type(machine.types.fieldType(machine.memory.info(object.root).type, name));
    if (type && (type->kind == TypeKind::Int || type->kind == TypeKind::Float) && field != old.end() &&
        !same(field->second, value))
      counts.insert(name);
  }
}

Value Lives::outsideNumber(Name field) const {
  const RootInfo &info = machine.memory.info(object.root);
  return machine.memory.symbolic(machine.types.fieldType(info.type, field),
                                 applyTerm(op::member, {info.origin, textTerm(field)}), field);
}

Lives::Lived Lives::mostComplete(Lived lives) {
  std::multimap<std::pair<std::size_t, std::size_t>, Life> sorted;
  for (Life &each : lives)
    sorted.emplace(incompleteness(leaves(each.row)), std::move(each));
  lives.clear();
  for (auto &[count, each] : sorted)
    if (isWithin(lives.size() + 1, bounds::livesOfObject, Bound::LivesOfObject))
      lives.push_back(std::move(each));
  return lives;
}

bool Lives::isInitialised(const Function &method, const Life &before, const Life &after) {
  const Value old = stateIn(before.row), state = stateIn(after.row);
  for (const auto &[field, value] : fieldsOf(state)) // what a method of Python adds
    if (globals.empty() && !fieldsOf(old).count(field) && !isBlank(value))
      return true;
  const Leaves now = leaves(after.row);
  for (const auto &[way, value] : leaves(before.row))
    if (const auto leaf = now.find(way); isBlank(value) && (leaf == now.end() || !isBlank(leaf->second)))
      return true;
  return isPlacer(machine.types, method) && !changedFields(before.row, after.row).empty();
}

// Most methods set nothing up: they are run once on an object and asked several times.
const Lives::Lived &Lives::call(const Function &method, Life &life) {
  if (life.number == 0)
    life.number = ++numbered;
  const auto [result, isNew] = results.try_emplace({&method, life.number});
  if (isNew && isWithin(factsRun, bounds::entriesOfLives * machine.mostFacts, Bound::FactsOfLives))
    result->second = run(method, life);
  return result->second;
}

Lives::Lived Lives::run(const Function &method, const Life &life) {
  const auto before = std::count(life.called.begin(), life.called.end(), method.id);
  const Leaves old = leaves(life.row);
  Lived lives;
  machine.devicesLeft = &life.left;
  machine.objectMovesGiven = std::any_of(old.begin(), old.end(), [](const auto &leaf) {
    const std::vector<Step> history = steps(leaf.second->history);
    return std::any_of(history.begin(), history.end(),
                       [](const Step &step) { return !step.givenTo.empty(); });
  });
  const bool isLater = isPython(method.where.file.view()) && isCalledLater(method);
  for (Outcome &outcome : states.call(method, life.row, object, static_cast<unsigned>(before))) {
    Row &row = outcome.row;
    const bool isOther = isPlacer(machine.types, method) && goOnWith(outcome.result, row);
    machine.memory.dropLocals(row, 0);
    row.registers.clear();
    row.failed = row.expressionEnded = false;
    row.iterations = nullptr;
    row.currentDevice = states.open().currentDevice;
    keepAnswers(row);
    const bool isAnew = isLater && isAnewOnCpu(old, leaves(row));
    if (globals.empty() && !isAnew)
      states.moveAsWhole(row, object.root);
    machine.memory.collectGarbage(row, nullptr);
    markFormer(old, leaves(row), row);
    Life after{std::move(row), life.called, life.left};
    after.isOther = isOther;
    after.called.push_back(method.id);
    addLeft(old, leaves(after.row), after.left);
    lives.push_back(std::move(after));
  }
  factsRun += machine.factsRun;
  machine.devicesLeft = nullptr;
  machine.objectMovesGiven = false;
  return lives;
}

// Where to() gives another object of the class, callers go on with that.
bool Lives::goOnWith(const Value &result, Row &row) const {
  if (!is(result, ValueKind::Address) || result->address.root == object.root || result->address.path ||
      machine.memory.info(result->address.root).type != machine.memory.info(object.root).type)
    return false;
  const Value other = row.store.get(result->address.root);
  if (!other || !is(other, ValueKind::Record))
    return false;
  row.store.set(object.root, other);
  return true;
}

// Is the object also used as its constructor leaves it: where to() gives another one, and where the
// constructor itself is given a device?
bool Lives::isUsedAsMade(const Function &placer, const Lived &after) const {
  if (!isPython(placer.where.file.view()) || !isPlacer(machine.types, placer))
    return false;
  const std::vector<Name> constructors = states.constructorsOf(machine.memory.info(object.root).type);
  return std::any_of(after.begin(), after.end(), [](const Life &each) { return each.isOther; }) ||
         std::any_of(constructors.begin(), constructors.end(),
                     [&](Name id) { return usage.takesDevice.count(id) != 0; });
}

bool Lives::leadsToModule(Name type) const {
  switch (machine.types.classOf(type)) {
  case TypeClass::Holder:
  case TypeClass::AnyModule:
    return true;
  case TypeClass::Pointer:
  case TypeClass::Optional:
  case TypeClass::Wrapper:
  case TypeClass::List:
  case TypeClass::Map:
    return leadsToModule(machine.types.inner(type));
  default:
    return machine.types.isModule(type);
  }
}

// Can code outside get at a module that the object holds, and move it?
bool Lives::handsOutModules(Name className) const {
  const Type *type = machine.program.type(className);
  if (!type)
    return true;
  // Fields of Python have no types, and everybody gets at them. A class that moves one itself moves all that
  // it wants elsewhere.
  const bool movesOwn = std::any_of(type->methods.begin(), type->methods.end(),
                                    [&](Name id) { return usage.movesOwn.count(id) != 0; });
  const bool isOpen = isPython(type->where.file.view()) && !machine.types.isModule(className) && !movesOwn;
  return isOpen ||
         std::any_of(type->fields.begin(), type->fields.end(),
                     [&](const Field &field) { return !field.isPrivate && leadsToModule(field.type); }) ||
         std::any_of(type->methods.begin(), type->methods.end(),
                     [&](Name id) {
                       const Function *method = machine.program.function(id);
                       return method && !method->isPrivate && leadsToModule(method->resultType);
                     }) ||
         std::any_of(type->bases.begin(), type->bases.end(),
                     [&](Name base) { return machine.program.type(base) && handsOutModules(base); });
}

std::set<Name> Lives::changedFields(const Row &before, const Row &after) const {
  std::set<Name> changed;
  const Value stateBefore = stateIn(before), stateAfter = stateIn(after);
  const auto &old = fieldsOf(stateBefore);
  for (const auto &[name, value] : fieldsOf(stateAfter)) {
    const auto field = old.find(name);
    std::set<RootId> seen{object.root}, seenBefore{object.root};
    if (field == old.end() || placesOf(after, value, seen) != placesOf(before, field->second, seenBefore))
      changed.insert(hidden::asRegistered(name));
  }
  return changed;
}

const std::set<Name> &Lives::mentionedIn(const Function &function) {
  auto [entry, isNew] = mentioned.try_emplace(function.id);
  if (!isNew)
    return entry->second;
  std::set<Name> names;
  std::set<const Function *> seen;
  std::vector<const Function *> work{&function};
  while (!work.empty()) {
    const Function *each = work.back();
    work.pop_back();
    if (!each || !seen.insert(each).second)
      continue;
    for (const Block &block : each->blocks)
      for (const Fact &fact : block.facts) {
        if (fact.kind == FactKind::Field || fact.kind == FactKind::Global)
          names.insert(fact.name);
        else if (isLateBound(fact) && (startsWith(fact.name.view(), "python::method::") ||
                                       startsWith(fact.name.view(), "python::attribute::"))) {
          const std::string_view name = lastPart(fact.name.view());
          names.insert(Name(name));
          for (const std::string &method : {std::string(name), "@get " + std::string(name)})
            work.push_back(findMethod(machine, function.className, method)); // of the object, most often
        }
        if (fact.target.empty())
          continue;
        work.push_back(machine.program.function(fact.target));
        if (const auto overriders = machine.program.overriders.find(fact.target);
            overriders != machine.program.overriders.end())
          for (Name id : overriders->second)
            work.push_back(machine.program.function(id));
      }
  }
  return mentioned[function.id] = std::move(names);
}

} // namespace devicetidy
