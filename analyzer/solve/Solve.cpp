#include "analyzer/solve/Solve.h"

#include "analyzer/models/UserModels.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Entries.h"
#include "analyzer/solve/library/Words.h"
#include "analyzer/solve/questions/DanglingData.h"
#include "analyzer/solve/questions/DeviceMaps.h"
#include "analyzer/solve/questions/DiscardedMoves.h"
#include "analyzer/solve/questions/Placed.h"
#include "analyzer/solve/questions/Unregistered.h"

#include <algorithm>
#include <tuple>

namespace devicetidy {
namespace {

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

// The operand that was left behind: the one on the CPU where there is one.
const PlacedOperand &culprit(const Conflict &conflict) {
  if (isAboutMemory(conflict.kind))
    return conflict.first;
  return conflict.first.device == "cpu" && conflict.second.device != "cpu" ? conflict.first : conflict.second;
}

// Is `later` told with `earlier`, which has the same cause? What only a caller can tell is told once.
bool isToldWith(const Conflict &earlier, const Conflict &later) {
  if (earlier.kind == ConflictKind::Load && later.kind == ConflictKind::Load)
    return true; // whatever meets what was loaded
  return later.level == Level::Latent || (earlier.level == later.level && onOnePath(earlier, later));
}

/// Where the reason for a conflict is; what a function was given has no place, but a name in it.
using Cause = std::pair<Location, std::string>;

// What only a caller can tell of the memory that a function reads is one thing, whatever it reads.
std::optional<Cause> causeOf(const Program &program, const Conflict &conflict) {
  if (conflict.level == Level::Latent && conflict.kind == ConflictKind::HostAccess)
    if (const Function *function = program.function(Name(conflict.functionId)))
      return Cause{function->where, {}};
  const Step *cause = decidingStep(culprit(conflict));
  if (cause && cause->where.valid())
    return Cause{cause->where, {}};
  if (cause && cause->kind == StepKind::Parameter)
    return Cause{{}, conflict.functionId + " " + cause->subject};
  return std::nullopt;
}

// One finding per operation, the surest; then one per root cause in a function: a tensor left behind is
// reported where it first meets another device.
void keepRootCauses(const Program &program, std::vector<Conflict> &conflicts) {
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
  std::map<Cause, std::vector<std::size_t>> byCause;
  for (const Level level : {Level::Definite, Level::Likely, Level::Latent})
    for (Conflict &conflict : kept) {
      if (conflict.level != level)
        continue;
      if (const std::optional<Cause> cause = causeOf(program, conflict)) {
        std::vector<std::size_t> &earlier = byCause[*cause];
        if (std::any_of(earlier.begin(), earlier.end(),
                        [&](std::size_t i) { return isToldWith(conflicts[i], conflict); }))
          continue;
        earlier.push_back(conflicts.size());
      }
      conflicts.push_back(std::move(conflict));
    }
}

// A device that is decided outside, where the program only ever puts one device: it is that one. What puts it
// there may be among the functions that were left out.
Placement withSettled(const Machine &machine, bool isIncomplete, const Placement &placement) {
  const DeviceChoices &choices = machine.memory.choices;
  const bool isTensor = placement.role == SymbolRole::Tensor;
  if (placement.kind != PlacementKind::Symbol || (!isTensor && placement.role != SymbolRole::DeviceChoice))
    return placement;
  if (isIncomplete && (isTensor || choices.isUnseen(placement.index)))
    return isTensor ? placement : Placement::unknown();
  return choices.settled(placement.index).value_or(placement);
}

// Operands that meet on the CPU in one row and on CUDA in another, where a tensor from outside was asked for
// its device: two questions that go together in the program, and only their wrong pairs are in conflict.
bool isWrongPair(const Machine &machine, std::size_t i, const Conflict &conflict) {
  const auto agreement = machine.agreements.find(conflict.where);
  return machine.conflictContexts[i].wasAsked && agreement != machine.agreements.end() &&
         agreement->second == std::pair(true, true);
}

// The level of a conflict between operands that are on `first` and `second` after all; nothing when there is
// none.
std::optional<Level> levelOf(const Machine::ConflictContext &context, const Placement &first,
                             const Placement &second) {
  switch (compare(first, second, true)) {
  case Verdict::Definite:
  case Verdict::Likely:
    return Level::Likely;
  case Verdict::Latent:
    return context.isMeant ? Level::Likely : Level::Latent;
  default:
    return std::nullopt;
  }
}

// Is the member that turns out to hold a tensor on the CPU one that the operation takes from there?
bool isScalar(const Machine &machine, const Placement &before, const Placement &after, bool mayBeScalar) {
  return mayBeScalar && before != after && after.kind == PlacementKind::Cpu &&
         machine.memory.choices.mayBeScalar(before.index);
}

void settle(const Machine &machine, bool isIncomplete, std::vector<Conflict> &conflicts) {
  std::vector<Conflict> kept;
  for (std::size_t i = 0; i < conflicts.size(); ++i) {
    const Machine::ConflictContext &context = machine.conflictContexts[i];
    const Placement first = withSettled(machine, isIncomplete, context.first),
                    second = withSettled(machine, isIncomplete, context.second);
    const bool isSettled = first != context.first || second != context.second;
    const bool isDecided = context.isPartial
                               ? first.kind != PlacementKind::Symbol && second.kind != PlacementKind::Symbol
                               : isSettled;
    if ((context.isCandidate && !isDecided) ||
        isScalar(machine, context.first, first, context.firstMayBeScalar) ||
        isScalar(machine, context.second, second, context.secondMayBeScalar))
      continue;
    Conflict &conflict = conflicts[i];
    if (isSettled) {
      const std::optional<Level> level = levelOf(context, first, second);
      if (!level)
        continue;
      conflict.level = std::max(*level, context.isCandidate ? Level::Definite : conflict.level);
      conflict.first.device = first.describe();
      conflict.second.device = second.describe();
    }
    if (isWrongPair(machine, i, conflict))
      conflict.level = Level::Latent;
    if (conflict.level != Level::Latent || machine.reportLatent)
      kept.push_back(std::move(conflict));
  }
  conflicts = std::move(kept);
}

} // namespace

std::vector<std::string_view> modelWords() { return library().words(); }

bool isModelWord(std::string_view word, bool isCall) {
  return isCall ? library().knows(word) : isValueWord(word);
}

Solution solve(const Program &program, const SolveOptions &options) {
  const models::UsingModels models(options.models.get());
  Solution solution;
  takeHits(); // of whoever used this thread before
  const Usage usage = scanUsage(program, Types(program), options.names);
  Machine machine(program, options, library(), solution, usage);
  machine.reportLatent = options.reportLatent;
  DeviceMaps deviceMaps(machine);
  if (deviceMaps.isNeeded())
    machine.calls = &deviceMaps;
  const UnregisteredHolders holders(machine);
  machine.owners = &holders;
  std::optional<PlacedExpressions> placed;
  if (options.placedIn)
    machine.facts = &placed.emplace(machine, *options.placedIn);
  runEntries(machine, usage);
  if (placed)
    solution.placed = placed->take();
  solution.mapsUnderDistributed = deviceMaps.findings();
  solution.discardedMoves = findDiscardedMoves(program, machine.types, machine.version);
  solution.danglingData = findDanglingData(program, machine.types, machine.version);
  settle(machine, options.isIncomplete, solution.conflicts);
  keepRootCauses(program, solution.conflicts);
  findUnregistered(machine, solution);
  for (Name id : program.order) {
    const Function *function = program.function(id);
    ++solution.stats.functions;
    for (const Block &block : function->blocks)
      solution.stats.facts += block.facts.size();
    if (!machine.entered.count(function))
      solution.stats.unreachedFunctions.push_back(function->name.str());
  }
  solution.stats.capsHit = takeHits();
  return solution;
}

} // namespace devicetidy
