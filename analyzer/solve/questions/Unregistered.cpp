#include "analyzer/solve/questions/Unregistered.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/questions/FactWalk.h"

#include <algorithm>

namespace devicetidy {
namespace {

bool isOrDerivesFrom(const Program &program, Name type, Name base) {
  if (type == base)
    return true;
  const Type *record = program.type(type);
  return record && std::any_of(record->bases.begin(), record->bases.end(),
                               [&](Name each) { return isOrDerivesFrom(program, each, base); });
}

bool constructs(const Function &function) {
  return function.isConstructor || models::hasRole(lastPart(function.name.view()), "constructs");
}

// The facts of the methods of `className` and its bases.
template <typename Visitor> void forEachFactOfMethods(const Program &program, Name className, Visitor visit) {
  for (Name id : program.order) {
    const Function *function = program.function(id);
    if (!function->className.empty() && isOrDerivesFrom(program, className, function->className))
      for (const Block &block : function->blocks)
        for (const Fact &fact : block.facts)
          visit(*function, fact);
  }
}

// Does `function`, or one that it calls, have a fact at `where`?
bool leadsTo(const Program &program, Name function, Location where, std::set<Name> &asked) {
  const Function *body = program.function(function);
  if (!body || !asked.insert(function).second)
    return false;
  for (const Block &block : body->blocks)
    for (const Fact &fact : block.facts)
      if (fact.where == where || (!fact.target.empty() && leadsTo(program, fact.target, where, asked)))
        return true;
  return false;
}

// Where a constructor or reset() makes what is made at `where`, itself or by a function it calls; for a
// module that takes the place of another, any method may. Not valid when none does.
Location inConstruction(const Program &program, Name className, Location where, bool isModule) {
  Location result, helper;
  std::set<Name> asked;
  forEachFactOfMethods(program, className, [&](const Function &function, const Fact &fact) {
    if (fact.where == where && (isModule || constructs(function)))
      result = where;
    else if (!isModule && constructs(function) && !fact.target.empty() && !helper.valid() &&
             leadsTo(program, fact.target, where, asked))
      helper = fact.where;
  });
  return result.valid() ? result : helper;
}

// Where a method of `className` makes the object of `site`, itself or by a function it calls.
Location madeInMethods(const Program &program, Name className, Term site) {
  Location result;
  const Name maker = site->args[0]->name;
  forEachFactOfMethods(program, className, [&](const Function &function, const Fact &fact) {
    const bool isHere = function.id == maker && fact.where.line == site->args[1]->number &&
                        fact.where.column == site->args[2]->number;
    if (!result.valid() && (isHere || fact.target == maker))
      result = fact.where;
  });
  return result;
}

// The module at `from` and what is registered below it.
std::set<RootId> registeredBelow(const Memory &memory, const Row &row, RootId from) {
  std::set<RootId> below{from};
  std::vector<RootId> open{from};
  while (!open.empty()) {
    const Value record = memory.read(row, {open.back(), nullptr});
    open.pop_back();
    if (!is(record, ValueKind::Record))
      continue;
    for (const auto &[name, field] : record->fields)
      if (hidden::isSubmodule(name) && is(field, ValueKind::Address) &&
          below.insert(field->address.root).second)
        open.push_back(field->address.root);
  }
  return below;
}

bool isRegisteredIn(const Value &record, RootId module) {
  return std::any_of(record->fields.begin(), record->fields.end(), [&](const auto &entry) {
    return hidden::isSubmodule(entry.first) && is(entry.second, ValueKind::Address) &&
           entry.second->address.root == module;
  });
}

// Python says of few members what they are: then the step that made it does.
bool isTensor(const Types &types, Name className, Name member, const Step &made) {
  const Name type = types.fieldType(className, member);
  return type.empty() ? made.kind != StepKind::ModuleMade : types.classOf(type) == TypeClass::Tensor;
}

// The call whose result the construction gives to a tensor member; not valid when there is none, or several.
Location assignedInConstruction(const Program &program, Name className, const std::string &member) {
  std::set<Location> calls;
  for (Name id : program.order) {
    const Function &function = *program.function(id);
    if (function.className != className || !constructs(function))
      continue;
    for (const OperandPlace &value : valuesOf(program, function, member)) {
      const std::optional<FactPlace> call = callOf(value);
      calls.insert(call ? call->fact().where : Location());
    }
  }
  return calls.size() == 1 ? *calls.begin() : Location();
}

// Where a tensor member is made: where it is assigned, or else the last step of its history in the
// construction, for one that is made from another (ones_like of a weight).
Location madeInConstruction(const Program &program, Name className, const std::string &member,
                            const PlacedOperand &operand, Location made) {
  if (const Location assigned = assignedInConstruction(program, className, member); assigned.valid())
    return assigned;
  Location result = made;
  for (const Step &step : operand.history)
    if ((step.kind == StepKind::Created || step.kind == StepKind::Inherited) &&
        inConstruction(program, className, step.where, /*isModule=*/false) == step.where)
      result = step.where;
  return result;
}

// The modules a member holds: itself, or its elements.
std::vector<RootId> modulesIn(const Value &held) {
  std::vector<RootId> modules;
  if (is(held, ValueKind::Address))
    modules.push_back(held->address.root);
  for (const auto *elements : {&held->elements, &held->summary})
    for (const Value &element : *elements)
      if (is(element, ValueKind::Address))
        modules.push_back(element->address.root);
  return modules;
}

// The member of `record`, a module, that holds `module` without being registered: how it was made, and what
// it is called.
std::vector<Step> holdingMember(const Machine &machine, const Row &row, const Value &record, RootId module) {
  for (const auto &[name, held] : record->fields) {
    const Field *field = machine.types.field(record->type, name);
    if (!field)
      continue;
    for (RootId root : modulesIn(held)) {
      if (isRegisteredIn(record, root) || !registeredBelow(machine.memory, row, root).count(module))
        continue;
      const Term site = machine.memory.info(root).site;
      const Location made = site ? madeInMethods(machine.program, record->type, site) : Location();
      if (made.valid())
        return {{StepKind::ModuleMade, made, name.str(), "cpu"},
                {StepKind::Member, field->where, record->type.str() + "::" + name.str(), "cpu"}};
    }
  }
  return {};
}

// A step that puts a member where a module's tensors are made: what a constructor takes to the CPU is left
// behind by to() like what it creates there.
bool isWhereItIsMade(const Step &step) {
  return step.kind == StepKind::Created || step.kind == StepKind::ModuleMade ||
         (step.kind == StepKind::Moved && step.device == "cpu");
}

std::vector<Step> holderIn(const Machine &machine, const Row &row, RootId module) {
  std::vector<Step> result;
  row.store.forEach([&](RootId, const Value &record) {
    if (result.empty() && is(record, ValueKind::Record) && machine.movedClasses.count(record->type))
      result = holdingMember(machine, row, record, module);
  });
  return result;
}

} // namespace

std::vector<Step> UnregisteredHolders::historyOf(const Frame &frame, const Row &row, RootId module) const {
  std::vector<Step> result = holderIn(machine, row, module);
  for (const Frame *each = &frame; each && result.empty(); each = each->caller)
    if (each->entry) {
      Row entered;
      entered.store = *each->entry;
      result = holderIn(machine, entered, module);
    }
  return result;
}

void findUnregistered(const Machine &machine, Solution &solution) {
  std::vector<Conflict> others;
  std::set<std::string> seen;
  for (Conflict &conflict : solution.conflicts) {
    if (isAboutMemory(conflict.kind)) {
      others.push_back(std::move(conflict));
      continue;
    }
    const Step *member = nullptr, *created = nullptr;
    const PlacedOperand *left = nullptr; // behind
    for (const PlacedOperand *operand : {&conflict.second, &conflict.first})
      for (const Step &step : operand->history)
        if (step.kind == StepKind::Member && !member) {
          member = &step;
          created = decidingStep(*operand);
          left = operand;
        }
    const std::string className =
        member ? member->subject.substr(0, member->subject.rfind("::")) : std::string();
    auto moved = machine.movedClasses.find(Name(className));
    const bool isMade = member && created && isWhereItIsMade(*created);
    const Location made = isMade ? inConstruction(machine.program, Name(className), created->where,
                                                  created->kind == StepKind::ModuleMade)
                                 : Location();
    if (!made.valid() || moved == machine.movedClasses.end()) {
      others.push_back(std::move(conflict));
      continue;
    }
    if (!seen.insert(member->subject).second)
      continue;
    UnregisteredMember finding;
    finding.className = className;
    finding.member = member->subject.substr(member->subject.rfind("::") + 2);
    finding.isModule = !isTensor(machine.types, Name(className), Name(finding.member), *created);
    finding.declared = member->where;
    finding.created = finding.isModule
                          ? made
                          : madeInConstruction(machine.program, Name(className), finding.member, *left, made);
    finding.moved = moved->second.where;
    finding.conflict = std::move(conflict);
    solution.unregisteredMembers.push_back(std::move(finding));
  }
  solution.conflicts = std::move(others);
}

} // namespace devicetidy
