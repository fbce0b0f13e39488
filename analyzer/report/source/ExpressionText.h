//===- ExpressionText.h - expressions as tokens -----------------*- C++ -*-===//
//
// Questions about the tokens of an expression: where it ends, and whether it can be repeated or be
// followed by a call.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/source/Tokens.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace devicetidy {

/// A run of tokens without comments.
struct TokenRange {
  const Token *first = nullptr, *last = nullptr; ///< the end is exclusive
  const Token *begin() const { return first; }
  const Token *end() const { return last; }
  bool empty() const { return first == last; }
  std::size_t size() const { return static_cast<std::size_t>(last - first); }
  const Token &operator[](std::size_t i) const { return first[i]; }
};

/// The bracket that closes the one at `open`, or the end of `range`.
const Token *closing(TokenRange range, const Token *open);

/// The innermost bracket that is open before `token`; null when there is none.
const Token *enclosing(TokenRange range, const Token *token);

/// The first token of the statement with `token`.
const Token *statementStart(TokenRange range, const Token *token);

/// The `;` that ends the statement with `token`, or the end of `range`.
const Token *statementEnd(TokenRange range, const Token *token);

/// Is `use` behind the statement from `first` to its end `last`, in the same block or in one in it?
bool isInBlockOf(const Token *first, const Token *last, const Token *use);

/// The parts of a parenthesised list without its parentheses, cut at the commas outside brackets.
std::vector<TokenRange> splitArguments(TokenRange inside);

/// Can `.to(...)` follow without parentheses? Names, members, calls, subscripts and parenthesised expressions
/// can.
bool isPostfix(TokenRange expression);

/// A braced list or a lambda: nothing `.to(...)` could follow even in parentheses.
bool isNoValue(TokenRange expression);

/// May the expression be evaluated a second time? Names, members and subscripts by names and literals may:
/// calls could do something.
bool isRepeatable(TokenRange expression);

/// `x[i].view({2}).index({...})` -> `x`: the tensor whose device the result of views and subscripts has. The
/// whole expression when it ends in none.
TokenRange withoutViews(TokenRange expression);

/// Where `.name` or `->name` chains begin: the first name of an expression, without `this->`.
std::string_view rootName(TokenRange expression);

} // namespace devicetidy
