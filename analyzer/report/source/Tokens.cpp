#include "analyzer/report/source/Tokens.h"

#include <algorithm>
#include <array>
#include <string>

namespace devicetidy {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Bytes above 0x7F are parts of UTF-8 letters.
bool isNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || isDigit(c) ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool isSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class Cutter {
public:
  explicit Cutter(std::string_view source) : source(source) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    while (true) {
      while (at < source.size() && isSpace(source[at]))
        ++at;
      if (at == source.size())
        return tokens;
      const std::size_t begin = at;
      const TokenKind kind = next();
      tokens.push_back({kind, begin, at, source.substr(begin, at - begin)});
    }
  }

private:
  char peek(std::size_t ahead = 0) const { return at + ahead < source.size() ? source[at + ahead] : '\0'; }

  /// Moves past one token.
  TokenKind next() {
    if (peek() == '/' && peek(1) == '/')
      return lineComment();
    if (peek() == '/' && peek(1) == '*') {
      const std::size_t close = source.find("*/", at + 2);
      at = close == std::string_view::npos ? source.size() : close + 2;
      return TokenKind::Comment;
    }
    if (peek() == '"' || peek() == '\'')
      return quoted();
    if (isDigit(peek()) || (peek() == '.' && isDigit(peek(1))))
      return number();
    if (isNameByte(peek()))
      return name();
    return punctuation();
  }

  /// A backslash at the end of the line carries the comment on.
  TokenKind lineComment() {
    for (; at < source.size() && source[at] != '\n'; ++at)
      if (source[at] == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n')))
        at += peek(1) == '\n' ? 1 : 2;
    return TokenKind::Comment;
  }

  TokenKind quoted() {
    const char quote = source[at++];
    // A literal without its closing quote ends with its line: an apostrophe after #error, for example.
    for (; at < source.size() && source[at] != quote && source[at] != '\n'; ++at)
      if (source[at] == '\\' && at + 1 < source.size())
        at += source[at + 1] == '\r' && peek(2) == '\n' ? 2 : 1;
    if (at < source.size() && source[at] == quote)
      ++at;
    at = std::min(at, source.size());
    return TokenKind::Text;
  }

  /// R"delimiter( ... )delimiter"
  TokenKind rawText() {
    const std::size_t open = source.find('(', at);
    if (open == std::string_view::npos || open - at > 17) // the standard allows 16 characters
      return quoted();
    const std::string close = ")" + std::string(source.substr(at + 1, open - at - 1)) + "\"";
    const std::size_t end = source.find(close, open);
    at = end == std::string_view::npos ? source.size() : end + close.size();
    return TokenKind::Text;
  }

  TokenKind number() {
    for (; at < source.size(); ++at) {
      const char c = source[at], before = source[at - (at > 0 ? 1 : 0)];
      const bool isExponentSign =
          (c == '+' || c == '-') && (before == 'e' || before == 'E' || before == 'p' || before == 'P');
      const bool isSeparator = c == '\'' && isNameByte(peek(1));
      if (!isNameByte(c) && c != '.' && !isSeparator && !isExponentSign)
        break;
    }
    return TokenKind::Number;
  }

  TokenKind name() {
    const std::size_t begin = at;
    while (at < source.size() && isNameByte(source[at]))
      ++at;
    const std::string_view prefix = source.substr(begin, at - begin);
    static constexpr std::array<std::string_view, 5> raw = {"R", "u8R", "uR", "UR", "LR"};
    static constexpr std::array<std::string_view, 4> plain = {"u8", "u", "U", "L"};
    if (peek() == '"' && std::find(raw.begin(), raw.end(), prefix) != raw.end())
      return rawText();
    if ((peek() == '"' || peek() == '\'') && std::find(plain.begin(), plain.end(), prefix) != plain.end())
      return quoted();
    return TokenKind::Identifier;
  }

  TokenKind punctuation() {
    static constexpr std::array<std::string_view, 20> pairs = {"::", "->", "==", "!=", "<=", ">=", "&&",
                                                               "||", "+=", "-=", "*=", "/=", "%=", "&=",
                                                               "|=", "^=", "++", "--", "<<", "##"};
    at += std::find(pairs.begin(), pairs.end(), source.substr(at, 2)) != pairs.end() ? 2 : 1;
    return TokenKind::Punctuation;
  }

  std::string_view source;
  std::size_t at = 0;
};

} // namespace

std::vector<Token> tokenize(std::string_view source) { return Cutter(source).run(); }

} // namespace devicetidy
