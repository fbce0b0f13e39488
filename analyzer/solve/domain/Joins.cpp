#include "analyzer/solve/domain/Joins.h"

#include "analyzer/solve/domain/Bounds.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Ends.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {
namespace {

// What its elements are, whichever iterations made them.
std::vector<Value> elementsOf(const Value &list) {
  std::vector<Value> all;
  for (const auto *elements : {&list->elements, &list->summary})
    for (const Value &element : *elements)
      all.push_back(generalise(element));
  return all;
}

Value joinNumbers(Term a, Term b, Term phi) {
  // What comes from the rank on one way still differs from process to process.
  const bool fromRank = applies(a, op::rank) || applies(b, op::rank);
  const Term joined = applyTerm(fromRank ? op::rank : op::phi, {phi});
  const bool isDecided = !restsOnOutside(a) && !restsOnOutside(b);
  return scalarValue(isDecided ? guess(joined) : joined);
}

Value joinLists(const Value &a, const Value &b, Term phi, JoinedNumbers &numbers) {
  if (!isSummary(a) && !isSummary(b) && a->elements.size() == b->elements.size()) {
    ValueData data = *a;
    for (std::size_t i = 0; i < data.elements.size(); ++i)
      data.elements[i] = joinValues(a->elements[i], b->elements[i],
                                    applyTerm(op::elementOf, {phi, intTerm(std::int64_t(i))}), numbers);
    return makeValue(std::move(data));
  }
  const std::vector<Value> first = elementsOf(a), second = elementsOf(b);
  std::vector<Value> alternatives = first;
  alternatives.insert(alternatives.end(), second.begin(), second.end());
  if (alternatives.empty())
    return a;
  // Elements of one list are in it together, those of two need not be.
  if (!holdsAll(a, b) && !holdsAll(b, a)) {
    Value any = alternatives.front();
    for (const Value &each : alternatives)
      any = joinValues(any, each, applyTerm(op::elementOf, {phi}));
    return summaryList(a->type, {any});
  }
  const std::size_t limit = std::max({bounds::listAlternatives, a->summary.size(), b->summary.size()});
  return withCommonEnds(a, b, summaryList(a->type, std::move(alternatives), limit));
}

Value joinRecords(const Value &a, const Value &b, Term phi, JoinedNumbers &numbers) {
  ValueData data = *a;
  if (a->origin != b->origin)
    data.origin = nullptr;
  for (auto &[name, field] : data.fields) {
    auto other = b->fields.find(name);
    // What one of two registered, Module::to moves where it is there. What a loop makes is known by its
    // iteration, and is registered in any.
    if (hidden::isSubmodule(name) &&
        (other == b->fields.end() ||
         (is(field, ValueKind::Address) && is(other->second, ValueKind::Address) &&
          field->address.root == other->second->address.root)))
      continue;
    field = other == b->fields.end()
                ? unknownValue()
                : joinValues(field, other->second, applyTerm(op::fieldOf, {phi, textTerm(name)}), numbers);
  }
  for (const auto &[name, field] : b->fields)
    data.fields.emplace(name, hidden::isSubmodule(name) ? field : unknownValue());
  return makeValue(std::move(data));
}

} // namespace

bool holdsAll(const Value &outer, const Value &inner) {
  const std::vector<Value> all = elementsOf(outer), some = elementsOf(inner);
  return std::all_of(some.begin(), some.end(), [&](const Value &each) {
    return std::any_of(all.begin(), all.end(), [&](const Value &other) { return same(each, other); });
  });
}

bool absorbs(const Value &a, const Value &b) {
  if (is(a, ValueKind::Unknown))
    return !isOpen(a) && !a->term && !isSomePart(a);
  if (!is(a, ValueKind::Tensor) || !is(b, ValueKind::Tensor) || a->address.valid() || b->address.valid())
    return false;
  const bool keepsRank = isOpenRank(a->rank) || (a->rank == b->rank && b->placement.isKnown());
  return !a->placement.isKnown() && keepsRank && a->count < 0 && !a->pinned;
}

Value joinValues(const Value &a, const Value &b, Term phi) {
  JoinedNumbers numbers;
  return joinValues(a, b, phi, numbers);
}

Value joinValues(const Value &a, const Value &b, Term phi, JoinedNumbers &numbers) {
  if (same(a, b))
    return a;
  if ((isSomePart(a) || isSomePart(b)) && a->address == b->address)
    return somePartOf(a->address);
  if (a->kind != b->kind)
    return unknownValue();
  switch (a->kind) {
  case ValueKind::Scalar: {
    Value &joined = numbers[{a->term, b->term}];
    if (!joined)
      joined = joinNumbers(a->term, b->term, phi);
    return joined;
  }
  case ValueKind::Tensor: {
    if (a->address.valid() || b->address.valid())
      return unknownValue();
    if (a->placement != b->placement)
      return tensorValue(Placement::unknown(), a->rank == b->rank ? a->rank : unknownRank, nullptr);
    const bool bothShaped = a->rank != 0 && b->rank != 0 && !isOpenRank(a->rank) && !isOpenRank(b->rank);
    const int rank = a->rank == b->rank ? a->rank : bothShaped ? someRank : unknownRank;
    return tensorValue(a->placement, rank, a->history);
  }
  case ValueKind::List:
    return joinLists(a, b, phi, numbers);
  case ValueKind::Record:
    return a->type == b->type ? joinRecords(a, b, phi, numbers) : unknownValue();
  default:
    return unknownValue();
  }
}

} // namespace devicetidy
