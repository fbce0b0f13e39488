#include "analyzer/solve/domain/Comparisons.h"

#include "analyzer/solve/domain/TermOps.h"

#include <limits>

namespace devicetidy {
namespace {

/// `subject < bound`, `bound < subject` or `subject == bound`.
struct Comparison {
  enum Kind { Below, Above, Equal } kind;
  Term subject;
  double bound;
};

std::optional<Comparison> comparisonOf(Term term) {
  if (term->kind != TermKind::Apply || (term->name != op::less && term->name != op::equal))
    return std::nullopt;
  const auto left = numberOf(term->args[0]), right = numberOf(term->args[1]);
  if (left.has_value() == right.has_value())
    return std::nullopt;
  const Term subject = left ? term->args[1] : term->args[0];
  if (term->name == op::equal)
    return Comparison{Comparison::Equal, subject, left ? *left : *right};
  return left ? Comparison{Comparison::Above, subject, *left}
              : Comparison{Comparison::Below, subject, *right};
}

/// The numbers a term can be.
struct Interval {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool lowOpen = true, highOpen = true; ///< the bound itself is not among them
  std::vector<double> holes;

  void above(double bound, bool open) {
    if (bound > low || (bound == low && open)) {
      low = bound;
      lowOpen = open;
    }
  }
  void below(double bound, bool open) {
    if (bound < high || (bound == high && open)) {
      high = bound;
      highOpen = open;
    }
  }
  bool isAbove(double bound) const { return low > bound || (low == bound && lowOpen); }
  bool isBelow(double bound) const { return high < bound || (high == bound && highOpen); }

  void restrict(const Comparison &comparison, bool holds) {
    switch (comparison.kind) {
    case Comparison::Below:
      return holds ? below(comparison.bound, true) : above(comparison.bound, false);
    case Comparison::Above:
      return holds ? above(comparison.bound, true) : below(comparison.bound, false);
    case Comparison::Equal:
      if (!holds)
        return holes.push_back(comparison.bound);
      above(comparison.bound, false);
      return below(comparison.bound, false);
    }
  }

  /// A hole at the edge makes the edge open.
  void openAtHoles() {
    for (double hole : holes) {
      lowOpen |= hole == low;
      highOpen |= hole == high;
    }
  }

  std::optional<bool> decide(const Comparison &comparison) const {
    const bool allAbove = isAbove(comparison.bound), allBelow = isBelow(comparison.bound);
    switch (comparison.kind) {
    case Comparison::Below:
      if (allBelow)
        return true;
      return low >= comparison.bound ? std::optional(false) : std::nullopt;
    case Comparison::Above:
      if (allAbove)
        return true;
      return high <= comparison.bound ? std::optional(false) : std::nullopt;
    case Comparison::Equal:
      if (allAbove || allBelow)
        return false;
      return low == high && low == comparison.bound ? std::optional(true) : std::nullopt;
    }
    return std::nullopt;
  }
};

/// `subject == text`.
struct TextQuestion {
  Term subject = nullptr, text = nullptr;
};

TextQuestion textQuestion(Term term) {
  if (!isOf(term, op::equal) || term->args.size() != 2)
    return {};
  const bool isFirst = term->args[0]->kind == TermKind::Text;
  if (isFirst == (term->args[1]->kind == TermKind::Text))
    return {};
  return {term->args[isFirst ? 1 : 0], term->args[isFirst ? 0 : 1]};
}

/// What is one text is no other.
std::optional<bool> impliedByText(const std::vector<std::pair<Term, std::int64_t>> &known,
                                  const TextQuestion &question) {
  for (const auto &[term, number] : known)
    if (const TextQuestion each = number != 0 ? textQuestion(term) : TextQuestion();
        each.subject == question.subject && each.text)
      return each.text == question.text;
  return std::nullopt;
}

} // namespace

Term compareIntegers(Term comparison) {
  if (comparison->kind != TermKind::Apply)
    return comparison;
  if (comparison->name == op::negation)
    return notTerm(compareIntegers(comparison->args[0]));
  if (comparison->name != op::less)
    return comparison;
  const auto bound = constantOf(comparison->args[1]);
  if (!bound || constantOf(comparison->args[0]) || *bound == std::numeric_limits<std::int64_t>::min())
    return comparison;
  return notTerm(applyTerm(op::less, {intTerm(*bound - 1), comparison->args[0]}));
}

std::optional<bool> impliedBy(const std::vector<std::pair<Term, std::int64_t>> &known, Term comparison) {
  if (const TextQuestion asked = textQuestion(comparison); asked.text)
    return impliedByText(known, asked);
  const auto question = comparisonOf(comparison);
  if (!question)
    return std::nullopt;
  Interval interval;
  if (question->subject->kind == TermKind::Apply && question->subject->name == op::size)
    interval.above(0, false);
  for (const auto &[term, number] : known)
    if (const auto each = comparisonOf(term); each && each->subject == question->subject)
      interval.restrict(*each, number != 0);
  interval.openAtHoles();
  return interval.decide(*question);
}

} // namespace devicetidy
