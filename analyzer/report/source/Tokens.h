//===- Tokens.h - C++ text cut into tokens ----------------------*- C++ -*-===//
//
// Suppressions live in comments and fixes are text, so the report needs to tell comments from strings and
// names from operators without a compiler. This is a lexer only: no preprocessing, no keywords.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace devicetidy {

enum class TokenKind : std::uint8_t { Identifier, Number, Text, Comment, Punctuation };

struct Token {
  TokenKind kind = TokenKind::Punctuation;
  std::size_t begin = 0, end = 0; ///< byte offsets, the end is exclusive
  std::string_view text;          ///< a view of the text that was cut
};

/// Cuts `source` into tokens. String and character literals (raw ones too) are Text, `::`, `->` and the
/// two-character operators are one token each, and anything that is not C++ becomes one-byte punctuation:
/// every byte that is not white space belongs to exactly one token.
std::vector<Token> tokenize(std::string_view source);

} // namespace devicetidy
