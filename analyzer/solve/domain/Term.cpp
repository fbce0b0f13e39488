#include "analyzer/solve/domain/Term.h"

#include "analyzer/solve/domain/Hashing.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <string>
#include <unordered_set>

namespace devicetidy {
namespace {

std::uint64_t hashOf(const TermNode &node) {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(node.kind), static_cast<std::uint64_t>(node.number));
  hash = mix(hash, textHash(node.name));
  for (Term arg : node.args)
    hash = mix(hash, arg->hash);
  return hash;
}

std::uint64_t marksOf(const TermNode &node) {
  std::uint64_t result = 0;
  if (node.kind == TermKind::Apply)
    result = marks::of(node.name);
  if (node.kind == TermKind::Symbol || isOf(&node, op::call)) // of these there are many
    result |= 1ULL << (node.hash % marks::ofTerms) | 1ULL << ((node.hash >> 32) % marks::ofTerms);
  for (Term arg : node.args)
    result |= arg->marks;
  return result;
}

struct Hash {
  std::size_t operator()(Term node) const { return node->hash; }
};
struct Same {
  bool operator()(Term a, Term b) const {
    return a->kind == b->kind && a->number == b->number && a->name == b->name && a->args == b->args;
  }
};

Term intern(TermNode node) {
  // One table per thread: a program is solved by one thread.
  thread_local std::deque<TermNode> nodes;
  thread_local std::unordered_set<Term, Hash, Same> table;
  node.hash = hashOf(node);
  if (auto found = table.find(&node); found != table.end())
    return *found;
  for (Term arg : node.args)
    node.size += arg->size;
  node.marks = marksOf(node);
  nodes.push_back(std::move(node));
  return *table.insert(&nodes.back()).first;
}

std::optional<std::int64_t> foldInts(Name op, std::int64_t a, std::int64_t b) {
  // Unsigned arithmetic: analysed programs may overflow, the analysis must not.
  auto wrap = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  if (op == op::plus)
    return wrap(ua + ub);
  if (op == op::minus)
    return wrap(ua - ub);
  if (op == op::times)
    return wrap(ua * ub);
  if (op == op::divide && b != 0 && b != -1)
    return a / b;
  if (op == op::remainder && b != 0 && b != -1)
    return a % b;
  if (op == op::equal)
    return a == b;
  if (op == op::less)
    return a < b;
  if (op == op::greater)
    return a > b;
  if (op == op::spaceship)
    return a < b ? -1 : a > b;
  if (op == op::bitAnd)
    return a & b;
  if (op == op::bitOr)
    return a | b;
  if (op == op::bitXor)
    return a ^ b;
  if (op == op::shiftLeft && b >= 0 && b < 63)
    return wrap(ua << ub);
  if (op == op::shiftRight && b >= 0 && b < 63)
    return a >> b;
  return std::nullopt;
}

// `a & ~b`, whatever the width of `b`. By itself `~b` is another number for each width.
std::optional<std::int64_t> maskedInt(Term a, Term b) {
  if (a->kind == TermKind::Apply)
    std::swap(a, b);
  const bool isMask = b->kind == TermKind::Apply && b->name == op::complement && constantOf(b->args[0]);
  if (!isMask || a->kind != TermKind::Int || a->number < 0)
    return std::nullopt;
  return a->number & ~*constantOf(b->args[0]);
}

bool commutes(Name op) {
  return op == op::plus || op == op::times || op == op::equal || op == op::bitAnd || op == op::bitOr;
}

// A comparison of two texts or two numbers.
template <typename T> Term compared(Name op, const T &a, const T &b) {
  return intTerm(op == op::equal ? a == b : op == op::less ? a < b : a > b);
}

// Is `term` a remainder that is never `number`?
bool isBeyondRemainder(Term term, Term number) {
  if (number->kind != TermKind::Int || term->kind != TermKind::Apply || term->name != op::remainder ||
      term->args[1]->kind != TermKind::Int)
    return false;
  const std::int64_t divisor = term->args[1]->number;
  return divisor > 0 && (number->number >= divisor || number->number <= -divisor);
}

Term foldBinary(Name op, Term a, Term b) {
  if (a->kind == TermKind::Int && b->kind == TermKind::Int)
    if (auto folded = foldInts(op, a->number, b->number))
      return intTerm(*folded);
  const bool isOrder = op == op::less || op == op::greater;
  if (isOrder || op == op::equal) {
    if (a->kind == TermKind::Text && b->kind == TermKind::Text)
      return compared(op, a->name.view(), b->name.view());
    if (const auto left = numberOf(a), right = numberOf(b); left && right)
      return compared(op, *left, *right);
    if (op == op::equal && (isBeyondRemainder(a, b) || isBeyondRemainder(b, a)))
      return intTerm(0);
    return a == b ? intTerm(op == op::equal) : nullptr;
  }
  auto isInt = [](Term term, std::int64_t number) {
    return term->kind == TermKind::Int && term->number == number;
  };
  const bool isQuotient = op == op::divide || op == op::remainder;
  if ((isInt(b, 0) && (op == op::plus || op == op::minus)) ||
      (isInt(b, 1) && (op == op::times || op == op::divide)) ||
      (isInt(a, 0) && (op == op::times || isQuotient)))
    return a;
  if ((isInt(a, 0) && op == op::plus) || (op == op::times && (isInt(b, 0) || isInt(a, 1))))
    return b;
  return nullptr;
}

} // namespace

std::uint64_t marks::of(Name op) { return 1ULL << (textHash(op) % ofTerms); }

Term intTerm(std::int64_t number) { return intern({TermKind::Int, number, {}, {}}); }
Term textTerm(Name text) { return intern({TermKind::Text, 0, text, {}}); }
Term symbolTerm(Name name) { return intern({TermKind::Symbol, 0, name, {}}); }
Term floatTerm(Name text) { return intern({TermKind::Apply, 0, op::floatNumber, {textTerm(text)}}); }

Term notTerm(Term condition) {
  if (condition->kind == TermKind::Int)
    return intTerm(condition->number == 0);
  if (condition->kind == TermKind::Apply && condition->name == op::negation)
    return condition->args[0];
  return intern({TermKind::Apply, 0, op::negation, {condition}});
}

Term applyTerm(Name op, std::vector<Term> args) {
  if (op == op::negation && args.size() == 1)
    return notTerm(args[0]);
  if (op == op::negate && args.size() == 1 && args[0]->kind == TermKind::Int)
    return intTerm(*foldInts(op::minus, 0, args[0]->number));
  if (op == op::bitAnd && args.size() == 2)
    if (const auto masked = maskedInt(args[0], args[1]))
      return intTerm(*masked);
  if (args.size() == 2) {
    if (op == op::unequal)
      return notTerm(applyTerm(op::equal, std::move(args)));
    if (op == op::lessOrEqual)
      return notTerm(applyTerm(op::greater, std::move(args)));
    if (op == op::greaterOrEqual)
      return notTerm(applyTerm(op::less, std::move(args)));
    if (Term folded = foldBinary(op, args[0], args[1]))
      return folded;
    if (op == op::greater) {
      std::swap(args[0], args[1]);
      return applyTerm(op::less, std::move(args));
    }
    if (commutes(op) && args[1]->hash < args[0]->hash)
      std::swap(args[0], args[1]);
  }
  TermNode node{TermKind::Apply, 0, op, std::move(args)};
  std::uint32_t size = 1;
  for (Term arg : node.args)
    size += arg->size;
  if (size > maxTermSize)
    return symbolTerm("big:" + std::to_string(hashOf(node)));
  return intern(std::move(node));
}

std::optional<std::int64_t> constantOf(Term term) {
  if (term && term->kind == TermKind::Int)
    return term->number;
  return std::nullopt;
}

std::optional<double> numberOf(Term term) {
  constexpr std::int64_t exact = std::int64_t(1) << 53;
  if (term->kind == TermKind::Int && term->number > -exact && term->number < exact)
    return static_cast<double>(term->number);
  if (term->kind == TermKind::Apply && term->name == op::floatNumber)
    return std::strtod(std::string(term->args[0]->name.view()).c_str(), nullptr);
  return std::nullopt;
}

std::optional<Name> textOf(Term term) {
  if (term && term->kind == TermKind::Text)
    return term->name;
  return std::nullopt;
}

namespace {

bool appliesMarked(Term term, Name op, std::uint64_t mark) {
  if (!marks::include(term->marks, mark))
    return false;
  if (term->kind == TermKind::Apply && term->name == op)
    return true;
  return std::any_of(term->args.begin(), term->args.end(),
                     [&](Term arg) { return appliesMarked(arg, op, mark); });
}

} // namespace

bool applies(Term term, Name op) {
  return term->kind == TermKind::Apply && appliesMarked(term, op, marks::of(op));
}

bool contains(Term term, Term part) {
  if (term == part)
    return true;
  if (!marks::include(term->marks, part->marks))
    return false;
  return std::any_of(term->args.begin(), term->args.end(), [&](Term arg) { return contains(arg, part); });
}

Term substitute(Term term, Term from, Term to) {
  if (term == from)
    return to;
  if (term->args.empty() || !contains(term, from))
    return term;
  std::vector<Term> args;
  for (Term arg : term->args)
    args.push_back(substitute(arg, from, to));
  return applyTerm(term->name, std::move(args));
}

Term elementIndex() {
  static const Name name("[i]");
  return symbolTerm(name);
}

} // namespace devicetidy
