//===- TextLine.h - words and lines of the facts text -----------*- C++ -*-===//
//
// Helpers to write and to read one line of the text form of facts (Text.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Location.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

namespace devicetidy {

// The names of the enumerators in the text, in their order.
inline constexpr std::array<const char *, 18> factNames = {
    "literal",  "local",     "global",  "this",      "field",  "element",
    "load",     "store",     "call",    "construct", "new",    "closure",
    "operator", "aggregate", "declare", "endscope",  "opaque", "endstatement"};
inline constexpr std::array<const char *, 7> literalNames = {"none",   "bool", "int", "float",
                                                             "string", "null", "enum"};
inline constexpr std::array<const char *, 4> joiningNames = {"linked", "module", "packaged", "everywhere"};
inline constexpr std::array<const char *, 10> typeNames = {"void",    "bool",  "int",    "float",    "enum",
                                                           "pointer", "array", "record", "function", "other"};
inline constexpr std::array<const char *, 5> terminatorNames = {"jump", "branch", "switch", "return",
                                                                "unreachable"};

/// The index of `name` in a list of words, or -1.
template <std::size_t N> int indexOf(const std::array<const char *, N> &names, const std::string &name) {
  auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

/// Thrown when a line is malformed; the reason is in the error string of the line.
struct BadText : std::exception {};

/// Parses one line.
class TextLine {
public:
  TextLine(std::string_view text, std::string &error) : text(text), error(error) { skipBlanks(); }

  bool atEnd() const { return position >= text.size(); }
  char peek() const { return atEnd() ? '\0' : text[position]; }

  [[noreturn]] void fail(const std::string &reason) const {
    error = reason + " at column " + std::to_string(position + 1);
    throw BadText();
  }

  bool take(char c) {
    if (peek() != c)
      return false;
    ++position;
    skipBlanks();
    return true;
  }

  void expect(char c) {
    if (!take(c))
      fail(std::string("expected '") + c + "'");
  }

  /// A bare or quoted name.
  std::string name() {
    std::string result = peek() == '"' ? quoted() : bare();
    skipBlanks();
    return result;
  }

  std::int64_t number() {
    std::int64_t value = 0;
    auto [end, status] = std::from_chars(text.data() + position, text.data() + text.size(), value);
    if (status != std::errc())
      fail("expected a number");
    position = static_cast<std::size_t>(end - text.data());
    skipBlanks();
    return value;
  }

  Location location(Name file) {
    expect('@');
    Location where;
    where.file = file;
    std::string written;
    if (peek() == '"')
      written = quoted();
    written += bare();
    skipBlanks();
    std::size_t dash = written.rfind('-');
    std::size_t column = written.rfind(':', dash);
    if (dash == std::string::npos || column == std::string::npos)
      fail("expected @line:column-end");
    std::size_t line = column ? written.rfind(':', column - 1) : std::string::npos;
    std::size_t lineStart = line == std::string::npos ? 0 : line + 1;
    where.line = part(written.substr(lineStart, column - lineStart));
    where.column = part(written.substr(column + 1, dash - column - 1));
    if (line != std::string::npos)
      where.file = Name(written.substr(0, line));
    std::string end = written.substr(dash + 1);
    std::size_t split = end.find(':');
    where.endLine = split == std::string::npos ? where.line : part(end.substr(0, split));
    where.endColumn = part(split == std::string::npos ? end : end.substr(split + 1));
    return where;
  }

private:
  void skipBlanks() {
    while (!atEnd() && (text[position] == ' ' || text[position] == '\t' || text[position] == '\r'))
      ++position;
  }

  std::uint32_t part(const std::string &digits) const {
    std::uint32_t value = 0;
    auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status != std::errc() || end != digits.data() + digits.size())
      fail("expected @line:column-end");
    return value;
  }

  std::string bare() {
    std::size_t start = position;
    while (!atEnd() && !std::strchr(" \t\r\"(),=", text[position]))
      ++position;
    if (start == position)
      fail("expected a name");
    return std::string(text.substr(start, position - start));
  }

  std::string quoted() {
    std::string result;
    for (++position; !atEnd() && text[position] != '"'; ++position) {
      char c = text[position];
      if (c == '\\') {
        if (++position >= text.size())
          break;
        c = text[position];
        if (c == 'n')
          c = '\n';
        else if (c == 'x')
          c = hexadecimal();
      }
      result += c;
    }
    if (atEnd())
      fail("a quoted name does not end");
    ++position;
    return result;
  }

  char hexadecimal() {
    int value = 0;
    if (position + 2 >= text.size() ||
        std::from_chars(text.data() + position + 1, text.data() + position + 3, value, 16).ptr !=
            text.data() + position + 3)
      fail("expected two hexadecimal digits");
    position += 2;
    return static_cast<char>(value);
  }

  std::string_view text;
  std::size_t position = 0;
  std::string &error;
};

} // namespace devicetidy
