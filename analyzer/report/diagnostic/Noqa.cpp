#include "analyzer/report/diagnostic/Noqa.h"

#include <cctype>

namespace devicetidy {
namespace {

constexpr std::string_view word = "noqa";
constexpr std::string_view blanks = " \t\r";

std::size_t skip(std::string_view text, std::size_t at, std::string_view characters) {
  while (at < text.size() && characters.find(text[at]) != std::string_view::npos)
    ++at;
  return at;
}

bool isWordAt(std::string_view text, std::size_t at) {
  for (std::size_t i = 0; i < word.size(); ++i)
    if (at + i >= text.size() || std::tolower(static_cast<unsigned char>(text[at + i])) != word[i])
      return false;
  const std::size_t end = at + word.size();
  return end == text.size() || !std::isalnum(static_cast<unsigned char>(text[end]));
}

bool isOfItem(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '*';
}

} // namespace

std::optional<Noqa> findNoqa(std::string_view comment) {
  Noqa result;
  for (std::size_t hash = comment.find('#');; hash = comment.find('#', hash + 1)) {
    if (hash == std::string_view::npos)
      return std::nullopt;
    result.begin = skip(comment, hash + 1, blanks);
    if (isWordAt(comment, result.begin))
      break;
  }
  result.end = result.begin + word.size();
  std::size_t at = skip(comment, result.end, blanks);
  if (at == comment.size() || comment[at] != ':')
    return result;
  result.hasList = true;
  result.end = ++at;
  while (true) {
    const std::size_t begin = skip(comment, at, " \t\r,");
    at = begin;
    while (at < comment.size() && isOfItem(comment[at]))
      ++at;
    if (at == begin)
      return result;
    result.items.push_back(comment.substr(begin, at - begin));
    result.end = at;
  }
}

} // namespace devicetidy
