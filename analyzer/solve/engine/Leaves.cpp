#include "analyzer/solve/engine/Leaves.h"

#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Hashing.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {
namespace {

void addLeaves(const Row &row, const Value &value, std::uint64_t way, std::set<RootId> &seen,
               Leaves &leaves) {
  std::uint64_t index = 0;
  for (const auto *list : {&value->elements, &value->summary})
    for (const Value &element : *list)
      addLeaves(row, element, mix(way, ++index), seen, leaves);
  for (const auto &[name, field] : value->fields)
    addLeaves(row, field, mix(way, name.hash()), seen, leaves);
  if (!is(value, ValueKind::Address))
    leaves.emplace(way, value);
  else if (seen.insert(value->address.root).second)
    if (const Value held = row.store.get(value->address.root))
      addLeaves(row, held, mix(way, 1), seen, leaves);
}

// Is it a device that somebody chose, who may choose another one?
bool isChosen(const Placement &placement) {
  return placement.index && !isFormer(placement) &&
         ((placement.kind == PlacementKind::Symbol && placement.role == SymbolRole::DeviceChoice) ||
          (placement.kind == PlacementKind::Cuda && !constantOf(placement.index) &&
           placement.index != currentCudaIndex()));
}

// A module that was loaded from a file holds its parameters in a field.
bool isFormerly(const Value &value) {
  return isFormer(value->placement) ||
         (is(value, ValueKind::Record) &&
          std::any_of(value->fields.begin(), value->fields.end(),
                      [](const auto &field) { return isFormerly(field.second); }));
}

// A loop that moves the elements of a list moves all of them, though it may count something else; one that
// adds elements makes the list anew, for a list of models on two devices serves nobody.
Value withoutFormerElements(const Value &value) {
  if (value->fields.empty() && value->summary.empty())
    return value;
  ValueData data = *value;
  for (auto &[name, field] : data.fields)
    field = withoutFormerElements(field);
  if (!std::all_of(data.summary.begin(), data.summary.end(), isFormerly))
    data.summary.erase(std::remove_if(data.summary.begin(), data.summary.end(), isFormerly),
                       data.summary.end());
  return makeValue(std::move(data));
}

// Is it the device of a tensor that a caller has passed?
bool isOfGiven(const Value &value) {
  const Placement &placement = value->placement;
  return is(value, ValueKind::Tensor) && placement.kind == PlacementKind::Symbol &&
         placement.role == SymbolRole::Tensor && !callThatWasGiven(placement).empty();
}

/// Devices that something is still on, and the move that it has not followed.
using Former = std::map<Term, Step>;

// The move that has brought `value` where it is.
Step moveOf(const Value &value) {
  for (const Event *event = value->history.get(); event; event = event->before.get())
    if (event->step.kind == StepKind::Moved || event->step.kind == StepKind::ModuleMoved)
      return event->step;
  return {};
}

// Where the object puts tensors that it was given on a chosen device, others that it has kept stay behind.
void addKept(const Leaves &before, const Leaves &now, Former &former) {
  std::set<Term> kept;
  std::size_t moved = 0;
  Step move;
  for (const auto &[way, value] : now)
    if (const auto old = before.find(way); old != before.end() && isOfGiven(old->second)) {
      if (old->second->placement == value->placement) {
        kept.insert(value->placement.index);
      } else if (isChosen(value->placement)) {
        ++moved;
        move = moveOf(value);
      }
    }
  if (moved > kept.size())
    for (Term index : kept)
      former.emplace(index, move);
}

// The tensors on the device `index` tell of the move that they have not followed.
Value leftBehind(const Value &value, Term index, const Step &move) {
  if (is(value, ValueKind::Tensor))
    return value->placement.index == index ? withHistory(value, extend(value->history, move)) : value;
  ValueData data = *value;
  for (auto &[name, field] : data.fields)
    field = leftBehind(field, index, move);
  for (auto *list : {&data.elements, &data.summary})
    for (Value &element : *list)
      element = leftBehind(element, index, move);
  return makeValue(std::move(data));
}

} // namespace

bool isBlank(const Value &value) {
  return is(value, ValueKind::Null) || (is(value, ValueKind::Record) && value->fields.empty()) ||
         (is(value, ValueKind::List) && value->elements.empty() && value->summary.empty());
}

Leaves leavesOf(const Row &row, const Value &state, RootId object) {
  Leaves leaves;
  std::set<RootId> seen{object};
  if (state)
    addLeaves(row, state, 0, seen, leaves);
  return leaves;
}

void markFormer(const Leaves &before, const Leaves &now, Row &after) {
  Former former;
  addKept(before, now, former);
  for (const auto &[way, value] : now)
    if (const auto old = before.find(way); // what a test has told of the same device is no move
        old != before.end() && after.resolve(old->second->placement) != after.resolve(value->placement) &&
        isChosen(old->second->placement) && isChosen(value->placement))
      former.emplace(old->second->placement.index, moveOf(value));
  for (auto &each : former) {
    const Term index = each.first;
    Step &move = each.second;
    move.kind = StepKind::LeftBehind;
    std::vector<std::pair<RootId, Value>> changed;
    after.store.forEach([&](RootId root, const Value &value) {
      const Term other = applyTerm(op::former, {index});
      const Value next = substitute(value, index, other);
      if (!same(next, value))
        changed.emplace_back(root, leftBehind(withoutFormerElements(next), other, move));
    });
    for (auto &[root, value] : changed)
      after.store.set(root, std::move(value));
  }
}

void addLeft(const Leaves &before, const Leaves &now, std::set<Term> &left) {
  for (const auto &[way, value] : now)
    if (const auto old = before.find(way);
        old != before.end() && is(value, ValueKind::Tensor) &&
        (value->placement.kind == PlacementKind::Cpu || isSaved(value->placement)) &&
        old->second->placement.index)
      left.insert(originOf(old->second->placement));
}

std::pair<std::size_t, std::size_t> incompleteness(const Leaves &leaves) {
  std::size_t blank = 0, fixed = 0;
  for (const auto &[way, value] : leaves) {
    blank += isBlank(value);
    fixed += value->placement.isKnown() && !isChosen(value->placement);
  }
  return {blank, fixed};
}

} // namespace devicetidy
