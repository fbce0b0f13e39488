#include "analyzer/solve/Solve.h"

#include "analyzer/solve/DeviceMaps.h"
#include "analyzer/solve/Entries.h"
#include "analyzer/solve/Machine.h"

#include <algorithm>
#include <tuple>

namespace devicetidy {
namespace {

const Step *decidingStep(const PlacedOperand &operand) {
  for (auto step = operand.witness.rbegin(); step != operand.witness.rend(); ++step)
    if (step->kind != StepKind::Inherited && step->kind != StepKind::Passed &&
        step->kind != StepKind::Returned && step->kind != StepKind::Stored && step->kind != StepKind::Member)
      return &*step;
  return operand.witness.empty() ? nullptr : &operand.witness.back();
}

// Were the two operations run in one function, or one in a function that (indirectly) called the other's?
bool onOnePath(const Conflict &a, const Conflict &b) {
  if (a.functionId == b.functionId)
    return true;
  if (a.entryId != b.entryId)
    return false;
  const auto &shorter = a.callers.size() < b.callers.size() ? a.callers : b.callers;
  const auto &longer = a.callers.size() < b.callers.size() ? b.callers : a.callers;
  return shorter.size() != longer.size() && std::equal(shorter.rbegin(), shorter.rend(), longer.rbegin(),
                                                       [](const CallSite &x, const CallSite &y) {
                                                         return x.where == y.where &&
                                                                x.function == y.function;
                                                       });
}

// One finding per operation, the surest; then one per root cause in a function: a tensor left behind is
// reported where it first meets another device.
void keepRootCauses(std::vector<Conflict> &conflicts) {
  std::map<Location, std::size_t> byPlace;
  std::vector<Conflict> kept;
  for (Conflict &conflict : conflicts) {
    auto [entry, isNew] = byPlace.emplace(conflict.where, kept.size());
    if (isNew)
      kept.push_back(std::move(conflict));
    else if (conflict.level < kept[entry->second].level)
      kept[entry->second] = std::move(conflict);
  }
  conflicts.clear();
  std::map<Location, std::vector<std::size_t>> byCause;
  for (Conflict &conflict : kept) {
    const Step *cause = decidingStep(conflict.second);
    if (cause && cause->where.valid()) {
      std::vector<std::size_t> &earlier = byCause[cause->where];
      if (std::any_of(earlier.begin(), earlier.end(), [&](std::size_t i) {
            return conflicts[i].level == conflict.level && onOnePath(conflicts[i], conflict);
          }))
        continue;
      earlier.push_back(conflicts.size());
    }
    conflicts.push_back(std::move(conflict));
  }
}

// Is `where` in a constructor or reset() of `className`?
bool isInConstruction(const Program &program, const std::string &className, Location where) {
  for (Name id : program.order) {
    const Function *function = program.function(id);
    const bool builds = function->isConstructor || function->name.str() == className + "::reset";
    if (!builds || function->className.str() != className)
      continue;
    for (const Block &block : function->blocks)
      for (const Fact &fact : block.facts)
        if (fact.where == where)
          return true;
  }
  return false;
}

// Conflicts whose cause is a member that Module::to leaves behind are told of the member, not of the
// operation.
void findUnregistered(const Machine &machine, Solution &solution) {
  std::vector<Conflict> others;
  std::set<std::string> seen;
  for (Conflict &conflict : solution.conflicts) {
    const Step *member = nullptr, *created = nullptr;
    for (const PlacedOperand *operand : {&conflict.second, &conflict.first})
      for (const Step &step : operand->witness)
        if (step.kind == StepKind::Member && !member) {
          member = &step;
          created = decidingStep(*operand);
        }
    const std::string className =
        member ? member->subject.substr(0, member->subject.rfind("::")) : std::string();
    auto moved = machine.movedClasses.find(Name(className));
    const bool madeHere = created &&
                          (created->kind == StepKind::Created || created->kind == StepKind::ModuleMade) &&
                          isInConstruction(machine.program, className, created->where);
    if (!member || moved == machine.movedClasses.end() || !madeHere) {
      others.push_back(std::move(conflict));
      continue;
    }
    if (!seen.insert(member->subject).second)
      continue;
    UnregisteredMember finding;
    finding.level = conflict.level;
    finding.className = className;
    finding.member = member->subject.substr(member->subject.rfind("::") + 2);
    finding.isModule = created->kind == StepKind::ModuleMade;
    finding.declared = member->where;
    finding.created = created->where;
    finding.used = conflict.where;
    finding.operation = conflict.operation;
    finding.moved = moved->second.where;
    finding.device = moved->second.device;
    solution.unregisteredMembers.push_back(std::move(finding));
  }
  solution.conflicts = std::move(others);
}

} // namespace

Solution solve(const Program &program, const SolveOptions &options) {
  Solution solution;
  const Usage usage = scanUsage(program, Types(program));
  Machine machine(program, options, solution, usage);
  machine.reportLatent = options.reportLatent;
  DeviceMaps deviceMaps(machine);
  machine.deviceMaps = &deviceMaps;
  runEntries(machine, usage);
  solution.mapsUnderDistributed = deviceMaps.findings();
  solution.discardedMoves = findDiscardedMoves(program);
  keepRootCauses(solution.conflicts);
  findUnregistered(machine, solution);
  for (Name id : program.order) {
    const Function *function = program.function(id);
    ++solution.stats.functions;
    for (const Block &block : function->blocks)
      solution.stats.facts += block.facts.size();
    if (!machine.entered.count(function))
      solution.stats.unreachedFunctions.push_back(function->name.str());
  }
  return solution;
}

} // namespace devicetidy
