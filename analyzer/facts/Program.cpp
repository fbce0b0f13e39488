#include "analyzer/facts/Program.h"

#include <algorithm>
#include <set>

namespace devicetidy {

std::uint32_t Function::lastLine() const {
  std::uint32_t last = std::max(where.line, where.endLine);
  for (const Block &block : blocks)
    for (const Fact &fact : block.facts)
      if (fact.where.file == where.file)
        last = std::max(last, fact.where.endLine);
  return last;
}

const Function *Program::function(Name id) const {
  auto found = functions.find(id);
  return found == functions.end() ? nullptr : &found->second;
}

const Type *Program::type(Name id) const {
  auto found = types.find(id);
  return found == types.end() ? nullptr : &found->second;
}

namespace {

/// How much a type entry knows: a class that one unit only declares may be defined in another.
std::size_t knowledge(const Type &type) {
  return type.fields.size() + type.bases.size() + type.methods.size() + type.constructors.size();
}

void addFunction(Program &program, Function &&function) {
  Name id = function.id;
  auto [place, isNew] = program.functions.try_emplace(id, std::move(function));
  if (!isNew && !place->second.hasBody && function.hasBody)
    place->second = std::move(function);
}

/// The entry that knows more wins; members that only the other one saw (instantiations of member templates)
/// are kept.
void addMissing(std::vector<Name> &list, const std::vector<Name> &more) {
  for (Name name : more)
    if (std::find(list.begin(), list.end(), name) == list.end())
      list.push_back(name);
}

void addType(Program &program, Type &&type) {
  Name id = type.id;
  auto [place, isNew] = program.types.try_emplace(id, std::move(type));
  if (isNew)
    return;
  Type &known = place->second;
  const bool isFirstDefinition = type.where.valid() && !known.where.valid();
  if (isFirstDefinition ||
      (knowledge(type) > knowledge(known) && known.fields.empty() && known.bases.empty()))
    std::swap(known, type);
  addMissing(known.constructors, type.constructors);
  addMissing(known.methods, type.methods);
}

void orderFunctions(Program &program) {
  for (const auto &[id, function] : program.functions)
    if (function.hasBody)
      program.order.push_back(id);
  std::sort(program.order.begin(), program.order.end(), [&](Name left, Name right) {
    const Location &a = program.functions.at(left).where, &b = program.functions.at(right).where;
    return a == b ? left < right : a < b;
  });
  for (Name id : program.order)
    for (Name base : program.functions.at(id).overrides)
      program.overriders[base].push_back(id);
  for (auto &[base, ids] : program.overriders)
    std::sort(ids.begin(), ids.end());
  for (const auto &[id, type] : program.types)
    program.derivedFrom.insert(type.bases.begin(), type.bases.end());
}

// Classes of one name in several modules of Python may seem to derive from each other: the base that leads
// back is no base.
void cutCycle(Program &program, Name id, std::unordered_map<Name, bool> &isDone) {
  const auto type = program.types.find(id);
  if (type == program.types.end())
    return;
  isDone[id] = false;
  std::vector<Name> &bases = type->second.bases;
  bases.erase(std::remove_if(bases.begin(), bases.end(),
                             [&](Name base) {
                               const auto found = isDone.find(base);
                               if (found == isDone.end())
                                 cutCycle(program, base, isDone);
                               return found != isDone.end() && !found->second;
                             }),
              bases.end());
  isDone[id] = true;
}

// A module runs what it imports first.
void addInitialiser(Program &program, const std::unordered_map<Name, Name> &initialisers, Name file,
                    std::unordered_set<Name> &isDone) {
  const auto found = initialisers.find(file);
  if (found == initialisers.end() || !isDone.insert(file).second)
    return;
  for (Name imported : program.imports[file])
    addInitialiser(program, initialisers, imported, isDone);
  if (!found->second.empty())
    program.globalInits.push_back(found->second);
}

} // namespace

Program link(std::vector<Unit> units) {
  Program program;
  std::unordered_map<Name, Name> initialisers; // of modules, by their files
  for (Unit &unit : units) {
    for (auto &[id, function] : unit.functions)
      addFunction(program, std::move(function));
    for (auto &[id, type] : unit.types)
      addType(program, std::move(type));
    for (auto &[id, global] : unit.globals)
      program.globals.try_emplace(id, global);
    if (unit.joining != Joining::Linked) {
      program.imports[unit.mainFile] = std::move(unit.imports);
      initialisers[unit.mainFile] = unit.globalInit;
    } else if (!unit.globalInit.empty()) {
      program.globalInits.push_back(unit.globalInit);
    }
    if (program.torchMajor == 0) {
      program.torchMajor = unit.torchMajor;
      program.torchMinor = unit.torchMinor;
    }
  }
  std::unordered_set<Name> isRun;
  for (const Unit &unit : units)
    addInitialiser(program, initialisers, unit.mainFile, isRun);
  std::unordered_map<Name, bool> isDone;
  for (const auto &[id, type] : program.types)
    if (!isDone.count(id))
      cutCycle(program, id, isDone);
  orderFunctions(program);
  return program;
}

} // namespace devicetidy
