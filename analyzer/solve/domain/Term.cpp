#include "analyzer/solve/domain/Term.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <string>
#include <unordered_set>

namespace devicetidy {
namespace {

const Name floatOp("float");

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2);
  a *= 0xff51afd7ed558ccdULL;
  return a ^ (a >> 32);
}

std::uint64_t textHash(Name name) { return std::hash<std::string_view>()(name.view()); }

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
  else if (node.kind == TermKind::Symbol)
    result = 1ULL << (node.hash % marks::ofTerms) | 1ULL << ((node.hash >> 32) % marks::ofTerms);
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

std::optional<std::int64_t> foldInts(std::string_view op, std::int64_t a, std::int64_t b) {
  // Unsigned arithmetic: analysed programs may overflow, the analysis must not.
  auto wrap = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  if (op == "+")
    return wrap(ua + ub);
  if (op == "-")
    return wrap(ua - ub);
  if (op == "*")
    return wrap(ua * ub);
  if (op == "/" && b != 0 && b != -1)
    return a / b;
  if (op == "%" && b != 0 && b != -1)
    return a % b;
  if (op == "==")
    return a == b;
  if (op == "<")
    return a < b;
  if (op == ">")
    return a > b;
  if (op == "&")
    return a & b;
  if (op == "|")
    return a | b;
  if (op == "^")
    return a ^ b;
  if (op == "<<" && b >= 0 && b < 63)
    return wrap(ua << ub);
  if (op == ">>" && b >= 0 && b < 63)
    return a >> b;
  return std::nullopt;
}

bool commutes(std::string_view op) { return op == "+" || op == "*" || op == "==" || op == "&" || op == "|"; }

Term foldBinary(Name op, Term a, Term b) {
  if (a->kind == TermKind::Int && b->kind == TermKind::Int)
    if (auto folded = foldInts(op.view(), a->number, b->number))
      return intTerm(*folded);
  const std::string_view text = op.view();
  if (text == "==" && a->kind == TermKind::Text && b->kind == TermKind::Text)
    return intTerm(a == b);
  if ((text == "<" || text == ">") && a->kind == TermKind::Text && b->kind == TermKind::Text)
    return intTerm(text == "<" ? a->name.view() < b->name.view() : a->name.view() > b->name.view());
  if (const auto left = numberOf(a), right = numberOf(b); left && right) {
    if (text == "==")
      return intTerm(*left == *right);
    if (text == "<" || text == ">")
      return intTerm(text == "<" ? *left < *right : *left > *right);
  }
  if (a == b && text == "==")
    return intTerm(1);
  if (a == b && (text == "<" || text == ">"))
    return intTerm(0);
  if (b->kind == TermKind::Int && b->number == 0 && (text == "+" || text == "-"))
    return a;
  if (a->kind == TermKind::Int && a->number == 0 && text == "+")
    return b;
  auto isInt = [](Term term, std::int64_t number) {
    return term->kind == TermKind::Int && term->number == number;
  };
  if ((text == "*" && (isInt(a, 0) || isInt(b, 1))) || ((text == "/" || text == "%") && isInt(a, 0)) ||
      (text == "/" && isInt(b, 1)))
    return a;
  if (text == "*" && (isInt(b, 0) || isInt(a, 1)))
    return b;
  return nullptr;
}

} // namespace

std::uint64_t marks::of(Name op) { return 1ULL << (textHash(op) % ofTerms); }

Term intTerm(std::int64_t number) { return intern({TermKind::Int, number, {}, {}}); }
Term textTerm(Name text) { return intern({TermKind::Text, 0, text, {}}); }
Term symbolTerm(Name name) { return intern({TermKind::Symbol, 0, name, {}}); }
Term floatTerm(Name text) { return intern({TermKind::Apply, 0, floatOp, {textTerm(text)}}); }

Term notTerm(Term condition) {
  static const Name negation("!");
  if (condition->kind == TermKind::Int)
    return intTerm(condition->number == 0);
  if (condition->kind == TermKind::Apply && condition->name == negation)
    return condition->args[0];
  return intern({TermKind::Apply, 0, negation, {condition}});
}

Term applyTerm(Name op, std::vector<Term> args) {
  static const Name equal("=="), less("<"), greater(">");
  const std::string_view text = op.view();
  if (text == "!" && args.size() == 1)
    return notTerm(args[0]);
  if (text == "neg" && args.size() == 1 && args[0]->kind == TermKind::Int)
    return intTerm(*foldInts("-", 0, args[0]->number));
  if (args.size() == 2) {
    if (text == "!=")
      return notTerm(applyTerm(equal, std::move(args)));
    if (text == "<=")
      return notTerm(applyTerm(greater, std::move(args)));
    if (text == ">=")
      return notTerm(applyTerm(less, std::move(args)));
    if (Term folded = foldBinary(op, args[0], args[1]))
      return folded;
    if (text == ">") {
      std::swap(args[0], args[1]);
      return applyTerm(less, std::move(args));
    }
    if (commutes(text) && args[1]->hash < args[0]->hash)
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
  if (term->kind == TermKind::Apply && term->name == floatOp)
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
