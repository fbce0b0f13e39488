//===- Rows.cpp - reads the effects of a row ---===//
#include "analyzer/models/Rows.h"

#include <cctype>
#include <charconv>

namespace devicetidy::models {
namespace {

class Reader {
public:
  explicit Reader(std::string_view text) : text(text) {}

  std::vector<Effect> effects() {
    std::vector<Effect> read;
    do
      read.push_back(effect());
    while (takes(';') && !atEnd());
    if (!atEnd())
      fail("expected ';' or the end of the row");
    return read;
  }

private:
  bool atEnd() {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
    return at == text.size();
  }

  bool takes(char c) {
    if (atEnd() || text[at] != c)
      return false;
    ++at;
    return true;
  }

  std::string_view nextWord() {
    const std::size_t start = at;
    auto belongs = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) ||
             std::string_view("_:.+-*/%<>=!&|").find(c) != std::string_view::npos;
    };
    while (at < text.size() && belongs(text[at]))
      ++at;
    return text.substr(start, at - start);
  }

  [[noreturn]] void fail(const std::string &message) const { throw RowError(message, at); }

  Effect effect() {
    if (atEnd())
      fail("expected an effect");
    if (text[at] == '\'')
      return quoted();
    Effect read;
    read.offset = at;
    const std::string_view word = nextWord();
    if (word.empty())
      fail("expected a word");
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), read.number);
    if (error == std::errc() && end == word.data() + word.size())
      read.kind = Effect::Kind::Number;
    read.word = word;
    if (!takes('('))
      return read;
    read.kind = Effect::Kind::Call;
    if (takes(')'))
      return read;
    do
      read.args.push_back(effect());
    while (takes(','));
    if (!takes(')'))
      fail("expected ',' or ')'");
    return read;
  }

  Effect quoted() {
    const std::size_t close = text.find('\'', at + 1);
    if (close == std::string_view::npos)
      fail("the text has no closing quote");
    Effect read;
    read.kind = Effect::Kind::Text;
    read.word = text.substr(at + 1, close - at - 1);
    at = close + 1;
    return read;
  }

  std::string_view text;
  std::size_t at = 0;
};

} // namespace

std::pair<std::string_view, int> splitRowName(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  constexpr std::string_view operatorWord = "operator"; // the slash of operator/ counts nothing
  const bool isCount = slash != std::string_view::npos &&
                       (slash < operatorWord.size() ||
                        name.substr(slash - operatorWord.size(), operatorWord.size()) != operatorWord);
  if (!isCount)
    return {name, -1};
  const std::string_view count = name.substr(slash + 1);
  int arity = -1;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), arity);
  if (error != std::errc() || end != count.data() + count.size() || arity < 0)
    throw RowError("expected a number of arguments after '/'", 0);
  return {name.substr(0, slash), arity};
}

Row parseRow(std::string_view name, std::string_view effects) {
  const auto [function, arity] = splitRowName(name);
  if (function.empty())
    throw RowError("expected the name of a function", 0);
  return {std::string(function), arity, Reader(effects).effects()};
}

} // namespace devicetidy::models
