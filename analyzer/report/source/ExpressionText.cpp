#include "analyzer/report/source/ExpressionText.h"

#include "analyzer/models/Spelling.h"

#include <algorithm>
#include <array>

namespace devicetidy {
namespace {

bool opens(const Token &token) { return token.text == "(" || token.text == "[" || token.text == "{"; }
bool closes(const Token &token) { return token.text == ")" || token.text == "]" || token.text == "}"; }

bool isName(const Token &token) { return token.kind == TokenKind::Identifier; }

bool isOperatorWord(std::string_view word) {
  static constexpr std::array<std::string_view, 18> words = {
      "new", "delete", "throw", "sizeof", "alignof", "co_await", "co_yield", "not",      "and",
      "or",  "xor",    "bitor", "bitand", "compl",   "typeid",   "noexcept", "operator", "not_eq"};
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool isAccess(const Token &token) { return token.text == "." || token.text == "->" || token.text == "::"; }

/// `add_`: the result is the tensor itself.
bool isInPlace(std::string_view method) {
  return method.size() > 1 && method.back() == '_' && method != "set_";
}

} // namespace

const Token *closing(TokenRange range, const Token *open) {
  int depth = 0;
  for (const Token *token = open; token != range.last; ++token) {
    depth += opens(*token) ? 1 : closes(*token) ? -1 : 0;
    if (depth == 0)
      return token;
  }
  return range.last;
}

const Token *enclosing(TokenRange range, const Token *token) {
  int depth = 0;
  while (token != range.first) {
    --token;
    depth += closes(*token) ? 1 : opens(*token) ? -1 : 0;
    if (depth < 0)
      return token;
  }
  return nullptr;
}

const Token *statementStart(TokenRange range, const Token *token) {
  while (token != range.first && token[-1].text != ";" && token[-1].text != "}" && token[-1].text != "{")
    --token;
  return token;
}

const Token *statementEnd(TokenRange range, const Token *token) {
  while (token != range.last && token->text != ";")
    token = opens(*token) ? closing(range, token) : token + 1;
  return token;
}

bool isInBlockOf(const Token *first, const Token *last, const Token *use) {
  int depth = 0, least = 0, atLast = 0;
  for (const Token *token = first; token < use; ++token) {
    depth += token->text == "{" ? 1 : token->text == "}" ? -1 : 0;
    least = std::min(least, depth);
    if (token == last)
      atLast = depth;
  }
  return last < use && least == 0 && atLast == 0;
}

std::vector<TokenRange> splitArguments(TokenRange inside) {
  std::vector<TokenRange> parts;
  if (inside.empty())
    return parts;
  TokenRange part{inside.first, inside.first};
  for (const Token *token = inside.first; token != inside.last; ++token) {
    if (opens(*token)) {
      token = closing(inside, token);
      if (token == inside.last)
        break;
    } else if (token->text == ",") {
      part.last = token;
      parts.push_back(part);
      part.first = token + 1;
    }
  }
  part.last = inside.last;
  parts.push_back(part);
  return parts;
}

bool isPostfix(TokenRange expression) {
  const Token *before = nullptr;
  for (const Token *token = expression.first; token != expression.last; ++token) {
    if (isName(*token) && (isOperatorWord(token->text) || (before && !isAccess(*before))))
      return false;
    if (opens(*token)) {
      token = closing(expression, token);
      if (token == expression.last)
        return false;
    } else if (token->kind == TokenKind::Punctuation && !isAccess(*token)) {
      return false;
    }
    before = token;
  }
  return before && !isAccess(*before);
}

bool isNoValue(TokenRange expression) {
  return expression.empty() || expression[0].text == "{" || expression[0].text == "[";
}

bool isRepeatable(TokenRange expression) {
  if (expression.empty() || !isName(expression[0]))
    return false;
  int depth = 0;
  const Token *before = nullptr;
  for (const Token &token : expression) {
    const bool isIndex = depth > 0 && (token.kind == TokenKind::Number || token.kind == TokenKind::Text ||
                                       token.text == "+" || token.text == "-");
    depth += token.text == "[" ? 1 : token.text == "]" ? -1 : 0;
    const bool isFine = (isName(token) && !isOperatorWord(token.text)) || isAccess(token) ||
                        token.text == "[" || token.text == "]" || isIndex;
    const bool isTwoNames = before && isName(*before) && isName(token);
    if (!isFine || isTwoNames)
      return false;
    before = &token;
  }
  return depth == 0 && !isAccess(*before);
}

TokenRange withoutViews(TokenRange expression) {
  while (expression.size() >= 4) {
    const Token &end = expression.last[-1];
    if (end.text != ")" && end.text != "]")
      break;
    const Token *open = expression.first;
    for (; open != expression.last; ++open) { // the bracket at depth 0 that the last token closes
      if (!opens(*open))
        continue;
      const Token *close = closing(expression, open);
      if (close == expression.last - 1)
        break;
      if (close == expression.last)
        return expression;
      open = close;
    }
    if (open == expression.last || open == expression.first)
      break;
    if (end.text == "]")
      expression.last = open;
    else if (open - expression.first >= 3 && open[-2].text == "." &&
             (models::spelling::keepsDevice(open[-1].text) || isInPlace(open[-1].text)))
      expression.last = open - 2;
    else
      break;
  }
  return expression;
}

std::string_view rootName(TokenRange expression) {
  if (expression.size() >= 3 && expression[0].text == "this" && isAccess(expression[1]))
    return expression[2].text;
  return expression.empty() ? std::string_view() : expression[0].text;
}

} // namespace devicetidy
