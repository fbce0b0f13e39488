#include "analyzer/solve/engine/Footprints.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <unordered_set>
#include <utility>

namespace devicetidy {
namespace {

// Stands for what a library calls by itself.
const Name &calledBack() {
  static const Name name("called back");
  return name;
}

// Is a class of a library among the bases of `type`?
bool isDerivedFromLibrary(const Types &types, Name type) {
  const Type *record = types.program.type(type);
  return record && std::any_of(record->bases.begin(), record->bases.end(), [&](Name base) {
           return !types.isProject(base) || isDerivedFromLibrary(types, base);
         });
}

// The methods of the classes of the program that `type` is, leads to or is made with.
void addMethods(const Types &types, Name type, std::unordered_set<Name> &seen,
                std::unordered_set<Name> &methods) {
  const Type *known = type.empty() || !seen.insert(type).second ? nullptr : types.program.type(type);
  if (!known)
    return;
  if (known->isProject)
    methods.insert(known->methods.begin(), known->methods.end());
  addMethods(types, known->pointee, seen, methods);
  for (const auto *parts : {&known->args, &known->bases})
    for (Name part : *parts)
      addMethods(types, part, seen, methods);
}

std::unordered_set<Name> methodsGiven(const Types &types, const Fact &call) {
  std::unordered_set<Name> seen, methods;
  for (const Operand &operand : call.operands)
    addMethods(types, operand.type, seen, methods);
  addMethods(types, call.type, seen, methods);
  return methods;
}

using Callers = std::unordered_map<Name, std::vector<Name>>;

Callers callersIn(const Program &program, const Types &types) {
  Callers callers;
  for (Name id : program.order) {
    const Function &function = *program.function(id);
    if (!function.className.empty() && isDerivedFromLibrary(types, function.className))
      callers[id].push_back(calledBack());
    for (const Block &block : function.blocks)
      for (const Fact &fact : block.facts) {
        const Function *target = fact.target.empty() ? nullptr : program.function(fact.target);
        if (!fact.target.empty())
          callers[fact.target].push_back(id);
        if ((fact.kind != FactKind::Call && fact.kind != FactKind::Construct) || (target && target->hasBody))
          continue;
        callers[calledBack()].push_back(id);
        for (Name method : methodsGiven(types, fact))
          callers[method].push_back(id);
      }
  }
  for (const auto &[base, overriders] : program.overriders)
    if (const auto ofBase = callers.find(base); ofBase != callers.end()) {
      const std::vector<Name> all = ofBase->second; // adding to the map moves what is in it
      for (Name overrider : overriders)
        callers[overrider].insert(callers[overrider].end(), all.begin(), all.end());
    }
  for (auto &[callee, all] : callers) { // one for each of its calls
    std::sort(all.begin(), all.end(), [](Name a, Name b) { return a.hash() < b.hash(); });
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  return callers;
}

// Brings what `change` takes from a function to its callers, from `start` on, as long as it changes them.
void spreadToCallers(const Callers &callers, std::vector<Name> start,
                     const std::function<bool(Name callee, Name caller)> &change) {
  std::deque<Name> work(start.begin(), start.end());
  std::unordered_set<Name> waiting(start.begin(), start.end());
  while (!work.empty()) {
    const Name id = work.front();
    work.pop_front();
    waiting.erase(id);
    if (const auto found = callers.find(id); found != callers.end())
      for (Name caller : found->second)
        if (caller != id && change(id, caller) && waiting.insert(caller).second)
          work.push_back(caller);
  }
}

} // namespace

Footprints::Footprints(const Program &program, const Types &types) {
  std::vector<Name> open, rest;
  for (Name id : program.order) {
    Names &own = of[id];
    for (const Block &block : program.function(id)->blocks)
      for (const Fact &fact : block.facts) {
        if (fact.kind == FactKind::Global)
          own.globals.insert(fact.name);
        own.all |= fact.isIndirect || isLateBound(fact);
      }
    named.insert(own.globals.begin(), own.globals.end());
    if (own.all)
      open.push_back(id);
  }
  const Callers callers = callersIn(program, types);
  spreadToCallers(callers, open, [&](Name, Name caller) { return !std::exchange(of[caller].all, true); });
  // Of what may come upon anything no names are asked for: in Python, of nearly all.
  for (auto &[id, names] : of)
    if (names.all)
      names.globals.clear();
    else
      rest.push_back(id);
  spreadToCallers(callers, rest, [&](Name callee, Name caller) {
    const Names &names = of[callee];
    Names &its = of[caller];
    const std::size_t before = its.globals.size();
    if (!its.all)
      its.globals.insert(names.globals.begin(), names.globals.end());
    return its.globals.size() != before;
  });
}

bool Footprints::mayMeet(const Function &function, Name id) const {
  return mayMeetAll(function) || of.at(function.id).globals.count(id) != 0;
}

bool Footprints::mayMeetAll(const Function &function) const {
  const auto names = of.find(function.id);
  return names == of.end() || names->second.all;
}

} // namespace devicetidy
