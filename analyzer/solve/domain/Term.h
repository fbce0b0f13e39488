//===- Term.h - scalars the analysis reasons about --------------*- C++ -*-===//
//
// Integers, booleans, enumerators, strings: either a constant, a symbol (a value fixed at run time), or an
// operation over terms. Terms are hash-consed, so equal terms are the same pointer: two reads of `n > 0` over
// the same `n` are one condition, and correlate.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Name.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace devicetidy {

enum class TermKind : std::uint8_t { Int, Text, Symbol, Apply };

struct TermNode;
using Term = const TermNode *;

struct TermNode {
  TermKind kind;
  std::int64_t number = 0; ///< Int
  Name name;               ///< Text: the string; Symbol: its name; Apply: the operator
  std::vector<Term> args;  ///< Apply
  std::uint64_t hash = 0;
  std::uint64_t marks = 0; ///< of the symbols and operators in it
  std::uint32_t size = 1;  ///< nodes in the term; terms over maxTermSize become fresh symbols
};

/// Marks are small Bloom filters: what a term, a value or a part of a store has among its marks it may
/// mention; what is not among them it does not mention. They let a rewrite pass by what it would not change.
namespace marks {
constexpr std::uint64_t address = 1ULL << 63;   ///< a value that holds an address
constexpr std::uint64_t iteration = 1ULL << 62; ///< a list whose last element stands for an iteration
constexpr std::uint64_t callable = 1ULL << 61;  ///< a function
constexpr unsigned ofTerms = 61;                ///< the other bits
inline bool include(std::uint64_t all, std::uint64_t wanted) { return (all & wanted) == wanted; }
/// Of operator `op`.
std::uint64_t of(Name op);
} // namespace marks

constexpr std::uint32_t maxTermSize = 24;

Term intTerm(std::int64_t number);
Term textTerm(Name text);
Term symbolTerm(Name name);
/// A floating-point literal; the same text is the same number.
Term floatTerm(Name text);
/// `op` over `args`, folded where the arguments are constants. Comparisons are normalised so that a condition
/// and its negation share one term: !=, >=, <= become negated ==, <, > forms.
Term applyTerm(Name op, std::vector<Term> args);
Term notTerm(Term condition);

std::optional<std::int64_t> constantOf(Term term);
/// The number of an integer or floating-point literal; nothing for one too long for a double.
std::optional<double> numberOf(Term term);
/// The text of a string constant.
std::optional<Name> textOf(Term term);
/// Is operator `op` applied anywhere in `term`?
bool applies(Term term, Name op);
/// Is it `op` that `term` applies, outermost?
inline bool isOf(Term term, Name op) { return term->kind == TermKind::Apply && term->name == op; }
/// Does `part` occur in `term`?
bool contains(Term term, Term part);
/// `term` with every `from` replaced by `to`.
Term substitute(Term term, Term from, Term to);

/// The bound variable of a list's element summary: "the index of the element".
Term elementIndex();

} // namespace devicetidy
