#include "analyzer/solve/domain/Row.h"

#include "analyzer/solve/domain/Bounds.h"
#include "analyzer/solve/domain/Comparisons.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Hashing.h"
#include "analyzer/solve/domain/Joins.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {
namespace {

Placement placementOf(Term device) {
  Placement placement;
  placement.kind = static_cast<PlacementKind>(device->args[0]->number);
  placement.role = static_cast<SymbolRole>(device->args[1]->number);
  placement.index = device->args.size() > 2 ? device->args[2] : nullptr;
  return placement;
}

bool isDevice(Term term) { return term->kind == TermKind::Apply && term->name == op::device; }

std::uint64_t rowHash(const Row &row, std::uint64_t storeDigest, bool places) {
  std::uint64_t hash = mix(storeDigest, row.currentDevice->hash);
  for (const Value &value : row.registers)
    hash = mix(hash, value ? (places ? value->placeHash : value->hash) : 1);
  for (const ModuleMove &move : row.moves)
    hash = mix(hash, mix(move.origin->hash, move.placement.hash()));
  return hash;
}

std::uint64_t knownHash(const Row &row) {
  std::uint64_t sum = row.guessed + (row.bounded ? 2 : 0) + (row.isOtherWay ? 4 : 0);
  for (const auto &[term, number] : row.known)
    sum += mix(term->hash, static_cast<std::uint64_t>(number) + 11);
  for (const auto &[term, placement] : row.aliases)
    sum += mix(term->hash, placement.hash());
  for (const auto &[a, b] : row.excluded)
    sum += mix(mix(a.first->hash, static_cast<std::uint64_t>(a.second)),
               mix(b.first->hash, static_cast<std::uint64_t>(b.second)));
  return sum;
}

} // namespace

Term deviceTerm(const Placement &placement) {
  std::vector<Term> args{intTerm(static_cast<int>(placement.kind)),
                         intTerm(static_cast<int>(placement.role))};
  if (placement.index)
    args.push_back(placement.index);
  return applyTerm(op::device, std::move(args));
}

Term indexOf(Term device) { return applyTerm(op::indexOf, {device}); }

Term deviceWithIndex(Term condition) {
  const bool isAsked = condition->kind == TermKind::Apply && condition->name == op::less &&
                       constantOf(condition->args[0]) == -1 && condition->args[1]->kind == TermKind::Apply &&
                       condition->args[1]->name == op::indexOf;
  return isAsked ? condition->args[1]->args[0] : nullptr;
}

namespace {

template <typename Entries> auto findIteration(Entries &iterations, std::int32_t loopHead) {
  return std::lower_bound(iterations.begin(), iterations.end(), loopHead,
                          [](const auto &entry, std::int32_t head) { return entry.first < head; });
}

} // namespace

Term Row::iterationOf(std::int32_t loopHead) const {
  if (!iterations)
    return nullptr;
  auto found = findIteration(*iterations, loopHead);
  return found != iterations->end() && found->first == loopHead ? found->second : nullptr;
}

void Row::setIteration(std::int32_t loopHead, Term iteration) {
  if (iterationOf(loopHead) == iteration)
    return;
  Iterations changed = iterations ? *iterations : Iterations();
  auto place = findIteration(changed, loopHead);
  if (place != changed.end() && place->first == loopHead)
    place->second = iteration;
  else
    changed.insert(place, {loopHead, iteration});
  iterations = std::make_shared<const Iterations>(std::move(changed));
}

Term Row::resolve(Term term) const {
  for (const auto &[known_, number] : known)
    if (known_ == term)
      return intTerm(number);
  if (term->kind != TermKind::Apply || term->name == op::device)
    return term;
  std::vector<Term> args; // filled from the first that changes
  for (std::size_t i = 0; i < term->args.size(); ++i) {
    const Term resolved = resolve(term->args[i]);
    if (args.empty() && resolved == term->args[i])
      continue;
    if (args.empty())
      args = term->args;
    args[i] = resolved;
  }
  if (!args.empty())
    return resolve(applyTerm(term->name, std::move(args)));
  const auto implied = impliedBy(known, term);
  return implied ? intTerm(*implied) : term;
}

std::optional<std::int64_t> Row::numberOf(const Value &value) const {
  return is(value, ValueKind::Scalar) ? constantOf(resolve(value->term)) : std::nullopt;
}

Placement Row::resolve(Placement placement) const {
  for (int hops = 0; hops < 4 && placement.kind == PlacementKind::Symbol; ++hops) {
    auto alias = std::find_if(aliases.begin(), aliases.end(),
                              [&](const auto &entry) { return entry.first == placement.index; });
    if (alias == aliases.end())
      break;
    placement = alias->second;
  }
  // What chose it may be known by now: rank % count, where the rank is 0.
  if (placement.kind == PlacementKind::Symbol && placement.role == SymbolRole::DeviceChoice) {
    const Term chosen = resolve(placement.index);
    if (const auto number = constantOf(chosen); number && *number >= 0)
      return Placement::cuda(chosen);
    if (const auto text = textOf(chosen))
      return parseDevice(text->view()).value_or(placement);
  }
  if (placement.kind == PlacementKind::Cuda)
    placement.index = resolve(placement.index);
  return placement;
}

void Row::forgetConditions(const std::function<bool(Term)> &changed) {
  known.erase(std::remove_if(known.begin(), known.end(),
                             [&](const Condition &condition) {
                               const bool isForgotten = changed(condition.first);
                               guessed |= isForgotten && isGuess(condition.first);
                               bounded |= isForgotten && restsOnBound(condition.first);
                               return isForgotten;
                             }),
              known.end());
  excluded.erase(std::remove_if(excluded.begin(), excluded.end(),
                                [&](const auto &pair) {
                                  return changed(pair.first.first) || changed(pair.second.first);
                                }),
                 excluded.end());
}

Term Row::pinned(Term term) const {
  for (const auto &[comparison, holds] : known) {
    if (holds != 1 || comparison->kind != TermKind::Apply || comparison->name != op::equal)
      continue;
    const Term left = comparison->args[0], right = comparison->args[1];
    if (constantOf(left) || left == currentCudaIndex())
      term = substitute(term, right, left);
    else if (constantOf(right))
      term = substitute(term, left, right);
  }
  return term;
}

void Row::learn(const Condition &condition) {
  if (!isWithin(known.size() + 1, bounds::knownConditions, Bound::Conditions)) {
    guessed |= isGuess(known.front().first);
    bounded |= restsOnBound(known.front().first);
    known.erase(known.begin());
  }
  known.push_back(condition);
}

bool Row::assume(Term term, std::int64_t number) {
  term = resolve(term);
  if (auto constant = constantOf(term))
    return *constant == number || (number == 1 && *constant != 0);
  if (term->kind == TermKind::Apply && term->name == op::negation)
    return assume(term->args[0], number == 0 ? 1 : 0);
  for (const auto &[one, two] : excluded) {
    const bool isOne = one == Condition(term, number), isTwo = two == Condition(term, number);
    const Condition &other = isOne ? two : one;
    if ((isOne || isTwo) && constantOf(resolve(other.first)) == other.second)
      return false;
  }
  learn({term, number});
  if (term->kind != TermKind::Apply)
    return true;
  if (term->name == op::equal && number == 1) {
    Term a = term->args[0], b = term->args[1];
    if (isDevice(a) && isDevice(b)) {
      Placement pa = resolve(placementOf(a)), pb = resolve(placementOf(b));
      if (pa.kind == PlacementKind::Symbol)
        aliases.emplace_back(pa.index, pb);
      else if (pb.kind == PlacementKind::Symbol)
        aliases.emplace_back(pb.index, pa);
    } else if (auto constant = constantOf(a) ? constantOf(a) : constantOf(b)) {
      return assume(constantOf(a) ? b : a, *constant);
    } else if (a == currentDevice || b == currentDevice) { // who has found it there need not make it current
      currentDevice = a == currentDevice ? b : a;
    }
  }
  if (const Term device = deviceWithIndex(term)) {
    const Placement placement = resolve(Placement::symbol(SymbolRole::None, device, {}));
    if (placement.kind != PlacementKind::Symbol)
      return (placement.kind == PlacementKind::Cuda) == (number == 1);
    return assumeDevice(placement, number == 1);
  }
  if ((term->name == op::isCuda || term->name == op::isCpu) && isDevice(term->args[0])) {
    const Placement device = resolve(placementOf(term->args[0]));
    if (device.kind == PlacementKind::Symbol)
      return assumeDevice(device, (term->name == op::isCuda) == (number == 1));
  }
  return true;
}

// What is on a GPU shows that there is one.
bool Row::assumeDevice(const Placement &device, bool isOnGpu) {
  aliases.emplace_back(device.index, isOnGpu ? Placement::cuda(indexOf(device.index)) : Placement::cpu());
  return !isOnGpu || assume(availableTerm(), 1);
}

std::uint64_t Row::stateDigest() const { return rowHash(*this, store.digest(), false); }
std::uint64_t Row::digest() const { return mix(stateDigest(), knownHash(*this)); }
std::uint64_t Row::placeDigest() const { return rowHash(*this, store.placeDigest(), true); }

} // namespace devicetidy
