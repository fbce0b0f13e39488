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

using Question = bool (*)(Term);

// The conditions of `row` that are not among `kept` and are such as the question asks for: guesses, or
// answers that a bound has left out.
std::vector<Condition> conditionsBut(const Row &row, const std::vector<Condition> &kept, Question isSuch) {
  std::vector<Condition> conditions;
  for (const Condition &condition : row.known)
    if (std::find(kept.begin(), kept.end(), condition) == kept.end() && isSuch(condition.first))
      conditions.push_back(condition);
  return conditions;
}

// Does a state that was reached as `a` and as `b` still rest on such a condition, when only `kept` is known
// of both? It does not where they are the two answers to one question.
bool staysSuch(const Row &a, const Row &b, bool Row::*mark, const std::vector<Condition> &kept,
               Question isSuch) {
  const std::vector<Condition> ofA = conditionsBut(a, kept, isSuch), ofB = conditionsBut(b, kept, isSuch);
  if (a.*mark || b.*mark)
    return (a.*mark || !ofA.empty()) && (b.*mark || !ofB.empty());
  const bool areAnswers = ofA.size() == 1 && ofB.size() == 1 && ofA[0].first == ofB[0].first;
  return !ofA.empty() && !ofB.empty() && !areAnswers;
}

template <typename T> std::vector<T> intersect(const std::vector<T> &a, const std::vector<T> &b) {
  std::vector<T> result;
  for (const T &entry : a)
    if (std::find(b.begin(), b.end(), entry) != b.end())
      result.push_back(entry);
  return result;
}

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

bool knows(const Row &row, Term term, std::int64_t number) {
  return std::find(row.known.begin(), row.known.end(), Condition(term, number)) != row.known.end();
}

// The pair never holds in the row: it says so, or it knows one of the two to be otherwise.
bool rulesOut(const Row &row, const std::pair<Condition, Condition> &pair) {
  if (std::find(row.excluded.begin(), row.excluded.end(), pair) != row.excluded.end())
    return true;
  for (const Condition &one : {pair.first, pair.second})
    for (const auto &[term, number] : row.known)
      if (term == one.first && number != one.second)
        return true;
  return false;
}

// What is excluded in both rows; and where they differ in a condition, what the second knows besides it.
void excludeAfterJoin(const Row &a, const Row &b, std::vector<std::pair<Condition, Condition>> &result) {
  auto add = [&](const std::pair<Condition, Condition> &pair) {
    if (std::find(result.begin(), result.end(), pair) == result.end() &&
        isWithin(result.size() + 1, bounds::excludedPairs, Bound::ExcludedPairs))
      result.push_back(pair);
  };
  for (const auto &pair : a.excluded)
    if (rulesOut(b, pair))
      add(pair);
  auto isBool = [](std::int64_t number) { return number == 0 || number == 1; };
  for (const auto &[term, number] : b.known) {
    if (!isBool(number) || !knows(a, term, 1 - number))
      continue;
    for (const auto &[other, value] : b.known)
      if (other != term && isBool(value) && !knows(a, other, value))
        add({{term, number}, {other, 1 - value}});
  }
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
      return placement;
    placement = alias->second;
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

std::uint64_t Row::digest() const { return mix(rowHash(*this, store.digest(), false), knownHash(*this)); }
std::uint64_t Row::placeDigest() const { return rowHash(*this, store.placeDigest(), true); }

std::uint64_t Row::deviceDigest() const {
  std::uint64_t sum = 0;
  auto add = [&](RootId root, const Value &value) {
    if (value && value->deviceHash)
      sum += mix(root, value->deviceHash);
  };
  store.forEach(add);
  for (std::size_t i = 0; i < registers.size(); ++i)
    add(static_cast<RootId>(i), registers[i]);
  Row rest;
  rest.moves = moves;
  rest.currentDevice = currentDevice;
  return rowHash(rest, sum, true);
}

namespace {

// A number that is the same in both rows, though not by the same term: one may have decided it by a
// condition.
Value agreedNumber(const Row &a, const Value &va, const Row &b, const Value &vb) {
  const std::optional<std::int64_t> number = same(va, vb) ? std::nullopt : a.numberOf(va);
  return number && number == b.numberOf(vb) ? scalarValue(intTerm(*number)) : nullptr;
}

// `va` with the numbers in it that are so.
Value withAgreedNumbers(const Row &a, const Value &va, const Row &b, const Value &vb) {
  if (const Value number = agreedNumber(a, va, b, vb))
    return number;
  Value result = va;
  if (is(va, ValueKind::Record) && is(vb, ValueKind::Record))
    for (const auto &[name, field] : va->fields)
      if (const auto other = vb->fields.find(name); other != vb->fields.end())
        if (const Value number = agreedNumber(a, field, b, other->second))
          result = withField(result, name, number);
  return result;
}

using ObjectsOfOne = std::map<RootId, Value>; ///< made on one of two ways

// Keeps those of `objects` that `joined` leads to: alternatives, and what was added to a list.
void keepReached(Store &store, std::vector<Value> joined, ObjectsOfOne &objects) {
  while (!joined.empty() && !objects.empty()) {
    const Value value = std::move(joined.back());
    joined.pop_back();
    forEachAddress(value, [&](const Address &address) {
      const auto object = objects.find(address.root);
      if (object == objects.end())
        return;
      store.set(object->first, object->second);
      joined.push_back(object->second);
      objects.erase(object);
    });
  }
}

} // namespace

namespace {

// `keepsObjects`: also those that only one of the two has, which are where they are on its way.
Row join(const Row &a, const Row &b, Term phi, bool keepsObjects) {
  Row result = a;
  JoinedNumbers numbers;
  std::vector<Value> joined;
  ObjectsOfOne objects;
  Store::forEachDifference(a.store, b.store, [&](RootId root, const Value &va, const Value &vb) {
    if (va && vb &&
        absorbs(va, vb)) // what was unknown before stays so: most of what differs in long functions
      return;
    if (!(va && vb) && kindOf(root) == RootKind::Heap)
      objects.emplace(root, va ? va : vb);
    if (va && vb)
      joined.push_back(joinValues(withAgreedNumbers(a, va, b, vb), withAgreedNumbers(b, vb, a, va),
                                  applyTerm(op::root, {phi, intTerm(root)}), numbers));
    result.store.set(root, va && vb ? joined.back() : nullptr);
  });
  for (std::size_t i = 0; i < result.registers.size(); ++i) {
    Value other = i < b.registers.size() ? b.registers[i] : nullptr;
    Value &mine = result.registers[i];
    if (mine && other && !same(mine, other))
      joined.push_back(mine = joinValues(
                           mine, other, applyTerm(op::registerOf, {phi, intTerm(std::int64_t(i))}), numbers));
    else if (!other)
      mine = nullptr;
  }
  if (keepsObjects)
    keepReached(result.store, std::move(joined), objects);
  result.known = intersect(a.known, b.known);
  result.guessed = staysSuch(a, b, &Row::guessed, result.known, isGuess);
  result.bounded = staysSuch(a, b, &Row::bounded, result.known, restsOnBound);
  result.isOtherWay = a.isOtherWay && b.isOtherWay;
  result.excluded.clear();
  excludeAfterJoin(a, b, result.excluded);
  excludeAfterJoin(b, a, result.excluded);
  std::vector<std::pair<Term, Placement>> aliases = intersect(a.aliases, b.aliases);
  result.aliases = std::move(aliases);
  if (a.currentDevice != b.currentDevice)
    result.currentDevice = applyTerm(op::phi, {phi, textTerm("current device")});
  if (a.moves.size() != b.moves.size() || !std::equal(a.moves.begin(), a.moves.end(), b.moves.begin(),
                                                      [](const ModuleMove &x, const ModuleMove &y) {
                                                        return x.origin == y.origin &&
                                                               x.placement == y.placement;
                                                      }))
    for (ModuleMove &move : result.moves)
      move.placement = Placement::unknown();
  return result;
}

} // namespace

Row joinRows(const Row &a, const Row &b, Term phi) { return join(a, b, phi, /*keepsObjects=*/true); }

namespace {

// Merges rows with equal keys in place, into the first of each, the last rows first, until there are
// `enough`.
template <typename KeyOf>
void mergeEqual(std::vector<Row> &rows, KeyOf keyOf, Term phi, std::size_t enough = 1) {
  std::vector<std::uint64_t> keys;
  keys.reserve(rows.size());
  for (const Row &row : rows)
    keys.push_back(keyOf(row));
  for (std::size_t i = rows.size(); i-- > 1 && rows.size() > enough;) {
    const auto end = keys.begin() + static_cast<std::ptrdiff_t>(i),
               first = std::find(keys.begin(), end, keys[i]);
    if (first == end)
      continue;
    Row &target = rows[static_cast<std::size_t>(first - keys.begin())];
    target = joinRows(target, rows[i], phi);
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(i));
    keys.erase(end);
  }
}

// Runs without GPUs have nothing to tell, nor has what rests on a bound: they make way for the others.
void dropMute(std::vector<Row> &rows) {
  const auto hasNoGpu = [](const Row &row) { return row.numberOf(scalarValue(availableTerm())) == 0; };
  for (bool (*isMute)(const Row &) : {+hasNoGpu, isBounded})
    if (!std::all_of(rows.begin(), rows.end(), isMute))
      rows.erase(std::remove_if(rows.begin(), rows.end(), isMute), rows.end());
}

// How many of its conditions do not hold in the other?
std::size_t countDenied(const Row &row, const Row &other) {
  return std::size_t(std::count_if(row.known.begin(), row.known.end(), [&](const Condition &condition) {
    return std::any_of(other.known.begin(), other.known.end(), [&](const Condition &each) {
      return each.first == condition.first && each.second != condition.second;
    });
  }));
}

// The row whose join with `row` forgets the least of why each is as it is; of several, the last.
Row &mostLike(const Row &row, std::vector<Row> &rows) {
  const auto denies = [&](const Row &a, const Row &b) { return countDenied(row, a) < countDenied(row, b); };
  return *std::prev(std::min_element(rows.rbegin(), rows.rend(), denies).base());
}

} // namespace

std::size_t mergeRows(std::vector<Row> &rows, std::size_t softCap, std::size_t cap, Term phi) {
  if (rows.size() < 2)
    return 0;
  mergeEqual(rows, [](const Row &row) { return rowHash(row, row.store.digest(), false); }, phi);
  if (rows.size() > softCap)
    dropMute(rows);
  if (rows.size() > softCap)
    mergeEqual(rows, [](const Row &row) { return row.placeDigest(); }, phi);
  if (rows.size() > cap)
    mergeEqual(rows, [](const Row &row) { return row.deviceDigest(); }, phi, cap);
  std::size_t joins = 0;
  for (; rows.size() > cap; ++joins) {
    const Row last = std::move(rows.back());
    rows.pop_back();
    Row &like = mostLike(last, rows);
    like = join(like, last, phi, /*keepsObjects=*/false);
  }
  return joins;
}

namespace {

bool differInLeftOut(const Row &a, const Row &b) {
  std::size_t lists = 0, others = 0;
  Store::forEachDifference(a.store, b.store, [&](RootId, const Value &left, const Value &right) {
    const bool areLists =
        left && right && is(left, ValueKind::List) && is(right, ValueKind::List) &&
        (isSummary(left) || isSummary(right) || left->elements.size() != right->elements.size());
    ++(areLists && (holdsAll(left, right) || holdsAll(right, left)) ? lists : others);
  });
  return lists == 1 && others == 0 && a.currentDevice == b.currentDevice && a.moves.size() == b.moves.size();
}

} // namespace

void mergeLeftOut(std::vector<Row> &rows, Term phi) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = i + 1; j < rows.size();)
      if (differInLeftOut(rows[i], rows[j])) {
        rows[i] = joinRows(rows[i], rows[j], phi);
        rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(j));
      } else {
        ++j;
      }
}

} // namespace devicetidy
