#include "analyzer/solve/engine/Footprints.h"

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_set>

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
void addMethods(const Types &types, Name type, std::set<Name> &seen, std::set<Name> &methods) {
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

std::set<Name> methodsGiven(const Types &types, const Fact &call) {
  std::set<Name> seen, methods;
  for (const Operand &operand : call.operands)
    addMethods(types, operand.type, seen, methods);
  addMethods(types, call.type, seen, methods);
  return methods;
}

} // namespace

Footprints::Footprints(const Program &program, const Types &types) {
  std::map<Name, std::vector<Name>> callers;
  for (Name id : program.order) {
    const Function &function = *program.function(id);
    Names &own = of[id];
    if (!function.className.empty() && isDerivedFromLibrary(types, function.className))
      callers[id].push_back(calledBack());
    for (const Block &block : function.blocks)
      for (const Fact &fact : block.facts) {
        if (fact.kind == FactKind::Global)
          own.globals.insert(fact.name);
        own.all |= fact.isIndirect || isLateBound(fact);
        const Function *target = fact.target.empty() ? nullptr : program.function(fact.target);
        if (!fact.target.empty())
          callers[fact.target].push_back(id);
        if ((fact.kind != FactKind::Call && fact.kind != FactKind::Construct) || (target && target->hasBody))
          continue;
        callers[calledBack()].push_back(id);
        for (Name method : methodsGiven(types, fact))
          callers[method].push_back(id);
      }
    named.insert(own.globals.begin(), own.globals.end());
  }
  for (const auto &[base, overriders] : program.overriders)
    for (Name overrider : overriders)
      callers[overrider].insert(callers[overrider].end(), callers[base].begin(), callers[base].end());
  for (auto &[callee, all] : callers) { // one for each of its calls
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  std::deque<Name> work(program.order.begin(), program.order.end());
  std::unordered_set<Name> waiting(program.order.begin(), program.order.end());
  while (!work.empty()) {
    const Name id = work.front();
    work.pop_front();
    waiting.erase(id);
    const Names &names = of[id];
    for (Name caller : callers[id]) {
      Names &its = of[caller];
      if (&its == &names)
        continue;
      const std::size_t before = its.globals.size() + its.all;
      its.globals.insert(names.globals.begin(), names.globals.end());
      its.all |= names.all;
      if (its.globals.size() + its.all != before && waiting.insert(caller).second)
        work.push_back(caller);
    }
  }
}

bool Footprints::mayMeet(const Function &function, Name id) const {
  return mayMeetAll(function) || of.at(function.id).globals.count(id) != 0;
}

bool Footprints::mayMeetAll(const Function &function) const {
  const auto names = of.find(function.id);
  return names == of.end() || names->second.all;
}

} // namespace devicetidy
