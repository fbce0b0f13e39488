#include "analyzer/solve/Solve.h"

#include "analyzer/models/UserModels.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Entries.h"
#include "analyzer/solve/library/Words.h"
#include "analyzer/solve/library/torch/RankDevices.h"
#include "analyzer/solve/questions/DanglingData.h"
#include "analyzer/solve/questions/DeviceMaps.h"
#include "analyzer/solve/questions/DiscardedMoves.h"
#include "analyzer/solve/questions/Mistakes.h"
#include "analyzer/solve/questions/Placed.h"
#include "analyzer/solve/questions/Unregistered.h"

#include <algorithm>
#include <tuple>

namespace devicetidy {
namespace {

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

// Two things that a caller passes, which another entry of the program keeps together: so may every caller.
bool areKeptTogether(const Machine &machine, std::size_t i, const Conflict &conflict) {
  const auto isGiven = [&](const Placement &placement) {
    return isOutside(placement) && callThatWasGiven(placement) == conflict.entryId;
  };
  const Machine::ConflictContext &context = machine.conflictContexts[i];
  const auto others = machine.togetherFor.find(conflict.where);
  return isGiven(context.first) && isGiven(context.second) && others != machine.togetherFor.end() &&
         others->second.size() > others->second.count(Name(conflict.entryId));
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
bool isScalar(const Machine &machine, const Placement &before, const Placement &after, bool mayBeScalar,
              bool isPart) {
  return mayBeScalar && before != after && after.kind == PlacementKind::Cpu &&
         machine.memory.choices.mayBeScalar(before.index, isPart);
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
        isScalar(machine, context.first, first, context.firstMayBeScalar, context.firstIsPart) ||
        isScalar(machine, context.second, second, context.secondMayBeScalar, context.secondIsPart))
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
    if (isWrongPair(machine, i, conflict) || areKeptTogether(machine, i, conflict))
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
  reportRanks(machine);
  solution.stats.factsRun += machine.factsRun + machine.factsOfPhases;
  if (placed)
    solution.placed = placed->take();
  solution.mapsUnderDistributed = deviceMaps.findings();
  solution.discardedMoves = findDiscardedMoves(machine);
  solution.danglingData = findDanglingData(program, machine.types, machine.version);
  settle(machine, options.isIncomplete, solution.conflicts);
  keepMistakes(program, solution.conflicts);
  findUnregistered(machine, solution);
  for (Name id : program.order) {
    const Function *function = program.function(id);
    ++solution.stats.functions;
    for (const Block &block : function->blocks)
      solution.stats.facts += block.facts.size();
    if (function->isEntry && !machine.entered.count(function))
      solution.stats.unreachedFunctions.push_back(function->name.str());
  }
  solution.stats.capsHit = takeHits();
  return solution;
}

} // namespace devicetidy
