//===- RowJoin.cpp - what two ways have in common ---===//
#include "analyzer/solve/domain/Bounds.h"
#include "analyzer/solve/domain/Comparisons.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Joins.h"
#include "analyzer/solve/domain/Row.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {
namespace {

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

Row joinRows(const Row &a, const Row &b, Term phi) {
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

} // namespace devicetidy
