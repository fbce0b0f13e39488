#include "analyzer/solve/library/torch/RankDevices.h"

#include "analyzer/facts/Language.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {
namespace {

// What a row remembers: as a global that no program has.
RootId remembered(Machine &machine, Name what) { return machine.memory.global(what, "bool", {}); }
const Name handleMade("@handle made"), localRank("@local rank"), gpusChosen("@visible devices");

void remember(Call &call, Name what, StepKind kind, const std::string &subject) {
  call.row.store.set(
      remembered(call.machine, what),
      deviceValue(Placement::unknown(), call.machine.note(nullptr, kind, call.fact.where, subject, {})));
}

// The place and name that were remembered; null when there are none.
const Step *recall(const Value &value) {
  return value && value->history ? decidingStep(value->history) : nullptr;
}

// Does the row know which rank it is, or that there are no ranks?
bool knowsRank(const Row &row) {
  return std::any_of(row.known.begin(), row.known.end(), [](const Condition &condition) {
    const auto &[term, number] = condition;
    if (!applies(term, op::rank))
      return false;
    const bool isEquality = term->kind == TermKind::Apply && term->name == op::equal;
    const bool isItself = term->kind == TermKind::Apply && term->name == op::rank;
    return isEquality ? number == 1 : !isItself || number == 0;
  });
}

// Does a condition on the number of GPUs lead here?
bool knowsCount(const Row &row) {
  return std::any_of(row.known.begin(), row.known.end(),
                     [](const Condition &condition) { return contains(condition.first, countTerm()); });
}

void collide(Call &call, RankCollision collision) {
  std::vector<RankCollision> &found = call.machine.solution.rankCollisions;
  if (std::none_of(found.begin(), found.end(),
                   [&](const RankCollision &each) { return each.where == collision.where; }))
    found.push_back(std::move(collision));
}

} // namespace

void noteVariable(Call &call, Name variable) {
  if (models::hasRole(variable.view(), "local_rank"))
    remember(call, localRank, StepKind::Chosen, variable.str());
}

// Which GPUs a process sees is decided by the program itself: cuda:0 may be another for each rank.
void noteVisibleDevices(Call &call, Name variable) {
  if (models::hasRole(variable.view(), "visible_devices"))
    remember(call, gpusChosen, StepKind::Chosen, variable.str());
}

void noteHandle(Call &call) {
  if (call.row.currentDevice == currentCudaIndex() && !knowsCount(call.row))
    remember(call, handleMade, StepKind::Created, std::string(lastPart(call.fact.name.view())));
}

void meetSetDevice(Call &call, Term before) {
  const RootId root = remembered(call.machine, handleMade);
  const Value value = call.row.store.get(root);
  const Step *handle = recall(value);
  const Term now = call.row.resolve(call.row.currentDevice);
  const bool isOfLoop = call.row.iterations && !call.row.iterations->empty();
  if (!handle || before != currentCudaIndex() || now == currentCudaIndex() || constantOf(now) || isOfLoop)
    return;
  collide(call, {Level::Likely,
                 handle->where,
                 handle->subject,
                 {},
                 call.fact.where,
                 true,
                 callersOf(call.machine.types, call.frame)});
  call.row.store.erase(root);
}

void meetPlacement(Call &call, const Placement &placement) {
  const Value value = call.row.store.get(remembered(call.machine, localRank));
  const Step *rank = recall(value);
  if (!rank || placement.kind != PlacementKind::Cuda ||
      call.row.store.get(remembered(call.machine, gpusChosen)))
    return;
  const bool isFirst = placement.index == currentCudaIndex() && entryOf(call.frame).function.isMain;
  // A Python program asks for its rank in one module, and others work with the device that it gives, which
  // the analysis may have lost.
  if (isPython(rank->where.file.view()) && rank->where.file != call.fact.where.file)
    return;
  if ((!constantOf(placement.index) && !isFirst) || knowsRank(call.row) || knowsCount(call.row))
    return;
  collide(call, {Level::Likely, call.fact.where, std::string(lastPart(call.fact.name.view())),
                 isFirst ? "cuda:0" : placement.describe(), rank->where, false,
                 callersOf(call.machine.types, call.frame)});
}

} // namespace devicetidy
