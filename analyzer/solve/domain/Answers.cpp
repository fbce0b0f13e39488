#include "analyzer/solve/domain/Answers.h"

#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>
#include <set>

namespace devicetidy {
namespace {

// The calls in `term` that may be made again.
void addCalls(Term term, std::set<Term> &calls) {
  if (!marks::include(term->marks, marks::of(op::call)) || isOf(term, op::kept))
    return;
  if (isOf(term, op::call))
    calls.insert(term);
  else
    for (Term arg : term->args)
      addCalls(arg, calls);
}

Term renamed(Term term, Term call, Term kept) {
  if (term == call)
    return kept;
  if (!marks::include(term->marks, call->marks) || isOf(term, op::kept))
    return term;
  std::vector<Term> args;
  args.reserve(term->args.size());
  for (Term arg : term->args)
    args.push_back(renamed(arg, call, kept));
  return args == term->args ? term : applyTerm(term->name, std::move(args));
}

// Gives what the store holds of the answer of `call` the name `kept`; false when it holds nothing of it.
bool renameHeld(Store &store, Term call, Term kept) {
  std::vector<std::pair<RootId, Value>> changed;
  store.forEach(
      [&](RootId root, const Value &value) {
        const Value next =
            rewriteScalars(value, [&](Term term) { return renamed(term, call, kept); }, call->marks);
        if (next != value)
          changed.emplace_back(root, next);
      },
      call->marks);
  for (auto &[root, value] : changed)
    store.set(root, value);
  return !changed.empty();
}

} // namespace

bool restsOnAnswer(Term term) {
  std::set<Term> calls;
  addCalls(term, calls);
  return !calls.empty();
}

bool isAnswerOfOneCall(Term term) {
  const auto tellsOfOne = [](Term arg) { return isOf(arg, op::once); };
  return isOf(term, op::kept) ||
         (isOf(term, op::call) &&
          (restsOnBound(term) || std::any_of(term->args.begin(), term->args.end(), tellsOfOne)));
}

void keepAnswers(Row &row) {
  std::set<Term> calls, kept;
  for (const auto &[term, number] : row.known) {
    addCalls(term, calls);
    if (isOf(term, op::kept))
      kept.insert(term);
  }
  // What asks about another answer before that one, in every run.
  std::vector<Term> inOrder(calls.begin(), calls.end());
  std::sort(inOrder.begin(), inOrder.end(),
            [](Term a, Term b) { return a->size != b->size ? a->size > b->size : a->hash < b->hash; });
  for (Term call : inOrder) {
    const Term held = applyTerm(op::kept, {call});
    // Of two answers the earlier one keeps the name.
    if (kept.count(held) || !renameHeld(row.store, call, held))
      continue;
    const auto rename = [&](Condition &condition) { condition.first = renamed(condition.first, call, held); };
    std::for_each(row.known.begin(), row.known.end(), rename);
    for (auto &[one, two] : row.excluded) {
      rename(one);
      rename(two);
    }
  }
  row.forgetConditions(restsOnAnswer);
}

} // namespace devicetidy
