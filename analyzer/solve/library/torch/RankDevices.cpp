#include "analyzer/solve/library/torch/RankDevices.h"

#include "analyzer/facts/Language.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/torch/CurrentDevice.h"

#include <algorithm>
#include <functional>

namespace devicetidy {
namespace {

// What a row remembers: as a global that no program has.
RootId remembered(Machine &machine, Name what) { return machine.memory.global(what, "bool", {}); }
const Name handleMade("@handle made"), localRank("@local rank"), globalRank("@global rank"),
    gpusChosen("@visible devices"), joinedHere("@ranks joined at"), withoutGpu("@ranks without a GPU"),
    ownGpu("@own GPU");

void remember(Call &call, Name what, StepKind kind, const std::string &subject) {
  call.row.store.set(
      remembered(call.machine, what),
      deviceValue(Placement::unknown(), call.machine.note(nullptr, kind, call.fact.where, subject, {})));
}

// The place and name that were remembered; null when there are none.
const Step *recall(const Value &value) {
  return value && value->history ? decidingStep(value->history) : nullptr;
}

const Step *recall(Machine &machine, const Row &row, Name what) {
  return recall(row.store.get(remembered(machine, what)));
}

// Calls `visit` with the facts of the program's own functions until it says that it has found something.
bool anyFact(const Program &program, const std::function<bool(const Fact &)> &visit) {
  return std::any_of(program.order.begin(), program.order.end(), [&](Name id) {
    const Function &function = *program.function(id);
    return !function.isModel &&
           std::any_of(function.blocks.begin(), function.blocks.end(), [&](const Block &block) {
             return std::any_of(block.facts.begin(), block.facts.end(), visit);
           });
  });
}

// The last word of `text`: set_device, of torch.cuda.set_device and c10::cuda::set_device.
std::string_view lastWord(std::string_view text) { return text.substr(text.find_last_of(".:") + 1); }

bool isText(const Fact &fact, std::string_view role) {
  return fact.kind == FactKind::Literal && fact.literal == LiteralKind::String &&
         models::hasRole(fact.name.view(), role);
}

// Does the program know that the rank on one machine is another than that among all?
bool tellsLocalRank(const Program &program) {
  return anyFact(program, [](const Fact &fact) {
    return isText(fact, "local_rank") || models::hasRole(lastWord(fact.name.view()), "local_rank");
  });
}

// Does it make a GPU current anywhere, or choose what a process sees? Then it may have done so here.
bool setsGpu(const Program &program) {
  return anyFact(program, [](const Fact &fact) {
    return (fact.kind == FactKind::Call && startsWith(lastWord(fact.name.view()), "set_device")) ||
           isText(fact, "visible_devices");
  });
}

} // namespace

bool isOneRank(const Row &row) {
  return std::any_of(row.known.begin(), row.known.end(), [](const Condition &condition) {
    const auto &[term, number] = condition;
    if (!applies(term, op::rank))
      return false;
    const bool isEquality = term->kind == TermKind::Apply && term->name == op::equal;
    const bool isItself = term->kind == TermKind::Apply && term->name == op::rank;
    return isEquality ? number == 1 : !isItself || number == 0;
  });
}

namespace {

// Does a condition on the number of GPUs lead here?
bool knowsCount(const Row &row) {
  return std::any_of(row.known.begin(), row.known.end(),
                     [](const Condition &condition) { return contains(condition.first, countTerm()); });
}

// Is a loop under way, over the GPUs perhaps?
bool isInLoop(const Call &call) {
  for (const Frame *frame = &call.frame; frame; frame = frame->caller)
    if (call.machine.iterationOf(*frame, call.row))
      return true;
  return false;
}

// The ranks that were joined without a GPU for each; null where there are none.
Machine::RanksJoined *joinedWithoutGpu(Machine &machine, const Row &row) {
  const Step *step = recall(machine, row, withoutGpu);
  return step ? &machine.ranksJoined[step->where] : nullptr;
}

} // namespace

void collide(Call &call, RankCollision collision) {
  std::vector<RankCollision> &found = call.machine.solution.rankCollisions;
  if (std::none_of(found.begin(), found.end(),
                   [&](const RankCollision &each) { return each.where == collision.where; }))
    found.push_back(std::move(collision));
}

// A module that others import may keep its rank for whoever is launched so.
void noteVariable(Call &call, Name variable) {
  if (call.frame.function.name.view() == importedBody)
    return;
  if (models::hasRole(variable.view(), "local_rank"))
    remember(call, localRank, StepKind::Chosen, variable.str());
  else if (isGlobalRank(variable.view()))
    noteGlobalRank(call);
}

void noteGlobalRank(Call &call) { remember(call, globalRank, StepKind::Chosen, {}); }

bool isGlobalRank(std::string_view name) { return models::hasRole(name, "global_rank"); }

Location ranksAskedAt(Machine &machine, const Row &row) {
  for (const Name what : {joinedHere, localRank, globalRank})
    if (const Step *step = recall(machine, row, what))
      return step->where;
  return {};
}

void noteRanksJoined(Call &call, const std::string &operation) {
  remember(call, joinedHere, StepKind::Chosen, operation);
  if (call.row.currentDevice != currentCudaIndex() ||
      call.row.store.get(remembered(call.machine, gpusChosen)) ||
      call.row.store.get(remembered(call.machine, ownGpu)))
    return;
  remember(call, withoutGpu, StepKind::Chosen, operation);
  call.machine.ranksJoined.emplace(
      call.fact.where,
      Machine::RanksJoined{operation, callersOf(call.machine.types, call.frame), false, false});
}

void noteRankGpu(Call &call) {
  if (Machine::RanksJoined *joined = joinedWithoutGpu(call.machine, call.row))
    joined->usesGpu = true;
}

void meetRankIndex(Call &call, Term index, const std::string &what) {
  const Term rank = call.row.resolve(index);
  if (rank->kind != TermKind::Apply || rank->name != op::rank || rank->args.size() != 1)
    return;
  const auto name = textOf(rank->args[0]);
  if (!name || !isGlobalRank(name->view()) || knowsCount(call.row)) // a rank that has a GPU here
    return;
  const Step *asked = recall(call.machine, call.row, globalRank);
  const std::vector<LostIndex> &found = call.machine.solution.lostIndices;
  const auto isOfSame = [&](const LostIndex &each) {
    return each.fault == IndexFault::GlobalRank && each.decided == asked->where &&
           each.where != call.fact.where;
  };
  if (asked && std::any_of(found.begin(), found.end(), isOfSame)) // one mistake, however often it is used
    return;
  // Environment variables are there for one machine, too; who names a rank otherwise means all of them.
  const bool isForMachines = !models::hasRole(name->view(), "rank") || tellsLocalRank(call.machine.program);
  loseIndex(call, what, {}, IndexFault::GlobalRank, asked ? asked->where : Location(),
            isForMachines ? Level::Likely : Level::Latent);
}

// Which GPUs a process sees is decided by the program itself: cuda:0 may be another for each rank.
void noteVisibleDevices(Call &call, Name variable) {
  if (models::hasRole(variable.view(), "visible_devices"))
    remember(call, gpusChosen, StepKind::Chosen, variable.str());
}

void noteHandle(Call &call, std::string what) {
  if (call.row.currentDevice == currentCudaIndex() && !knowsCount(call.row))
    remember(call, handleMade, StepKind::Created,
             what.empty() ? std::string(lastPart(call.fact.name.view())) : std::move(what));
  noteRankGpu(call);
}

namespace {

void endWithoutGpu(Call &call) {
  if (Machine::RanksJoined *joined = joinedWithoutGpu(call.machine, call.row)) {
    joined->isSet = true;
    call.row.store.erase(remembered(call.machine, withoutGpu));
  }
}

} // namespace

void noteOwnGpu(Call &call) {
  endWithoutGpu(call);
  remember(call, ownGpu, StepKind::Chosen, {});
}

void meetSetDevice(Call &call, Term before, bool isForBlock) {
  endWithoutGpu(call);
  const RootId root = remembered(call.machine, handleMade);
  const Value value = call.row.store.get(root);
  const Step *handle = recall(value);
  const Term now = call.row.resolve(call.row.currentDevice);
  const bool isOfLoop = isForBlock || isInLoop(call);
  if (!handle || before != currentCudaIndex() || now == currentCudaIndex() || constantOf(now) || isOfLoop)
    return;
  collide(call, {Level::Likely,
                 handle->where,
                 handle->subject,
                 {},
                 call.fact.where,
                 RankFault::Early,
                 callersOf(call.machine.types, call.frame)});
  call.row.store.erase(root);
}

void meetPlacement(Call &call, const Placement &placement) {
  if (placement.kind == PlacementKind::Cuda) {
    if (applies(placement.index, op::rank))
      call.machine.placedByRank.insert(call.fact.where);
    meetRankIndex(call, placement.index, std::string(lastPart(call.fact.name.view())));
    if (placement.index == currentCudaIndex() && joinedWithoutGpu(call.machine, call.row))
      noteHandle(call); // which it is too late to put elsewhere
  }
  if (placement.kind != PlacementKind::Cpu) // ranks that are joined for GPUs choose no other devices
    noteRankGpu(call);
  const Step *local = recall(call.machine, call.row, localRank);
  const Step *rank = local ? local : recall(call.machine, call.row, joinedHere);
  if (!rank || placement.kind != PlacementKind::Cuda ||
      call.row.store.get(remembered(call.machine, gpusChosen)))
    return;
  const bool isFirst = local && placement.index == currentCudaIndex() &&
                       entryOf(call.frame).function.isMain &&
                       !call.row.store.get(remembered(call.machine, ownGpu));
  // A Python program asks for its rank in one module, and others work with the device that it gives, which
  // the analysis may have lost.
  if (isPython(rank->where.file.view()) && rank->where.file != call.fact.where.file)
    return;
  if ((!constantOf(placement.index) && !isFirst) || isOneRank(call.row) || knowsCount(call.row))
    return;
  collide(call, {Level::Likely, call.fact.where, std::string(lastPart(call.fact.name.view())),
                 isFirst ? "cuda:0" : placement.describe(), rank->where, RankFault::Placed,
                 callersOf(call.machine.types, call.frame)});
}

void reportRanks(Machine &machine) {
  std::vector<RankCollision> &found = machine.solution.rankCollisions;
  // Where the rank names the GPU on another way, this one is for the only rank, or for too few GPUs.
  found.erase(std::remove_if(found.begin(), found.end(),
                             [&](const RankCollision &each) {
                               return each.fault == RankFault::Placed &&
                                      machine.placedByRank.count(each.where) != 0;
                             }),
              found.end());
  const bool isTold = std::any_of(found.begin(), found.end(),
                                  [](const RankCollision &each) { return each.fault == RankFault::Placed; });
  for (const auto &[where, joined] : machine.ranksJoined)
    if (joined.usesGpu && !joined.isSet && !isTold)
      found.push_back({setsGpu(machine.program) ? Level::Latent : Level::Likely,
                       where,
                       joined.operation,
                       {},
                       where,
                       RankFault::Unset,
                       joined.callers});
}

} // namespace devicetidy
