#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Lists.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace devicetidy::python {
namespace {

std::vector<std::string> splitAt(const std::string &text, const std::string &separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t at = text.find(separator); at != std::string::npos; at = text.find(separator, from)) {
    parts.push_back(text.substr(from, at - from));
    from = at + separator.size();
  }
  parts.push_back(text.substr(from));
  return parts;
}

std::vector<std::string> words(const std::string &text) {
  std::istringstream stream(text);
  std::vector<std::string> all;
  for (std::string word; stream >> word;)
    all.push_back(word);
  return all;
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string inCase(std::string text, bool isLower) {
  for (char &each : text)
    each = static_cast<char>(isLower ? std::tolower(static_cast<unsigned char>(each))
                                     : std::toupper(static_cast<unsigned char>(each)));
  return text;
}

std::string stripped(const std::string &text) {
  const char *const spaces = " \t\r\n\v\f";
  const std::size_t first = std::min(text.find_first_not_of(spaces), text.size());
  return text.substr(first, text.find_last_not_of(spaces) + 1 - first);
}

Value textValue(const std::string &text) { return scalarValue(textTerm(Name(text))); }

} // namespace

std::optional<Outcomes> callTextMethod(Call &call, Row &row, const std::string &text, const std::string &name,
                                       const Given &given) {
  if (name == "format" && given.named.empty() && !given.isOpen) {
    std::vector<Value> values;
    for (const Argument &each : given.positional)
      values.push_back(each.value);
    return done(row, withValues(call, row, text, {"{}"}, values));
  }
  std::vector<std::string> parts;
  for (const Argument &each : given.positional)
    if (const auto part = textOf(call, each.value))
      parts.push_back(*part);
  if (parts.size() != given.positional.size())
    return std::nullopt;
  if (isOneOf(name, {"startswith", "endswith"}) && parts.size() == 1)
    return done(row, scalarValue(intTerm(name == "startswith" ? startsWith(text, parts[0])
                                                              : endsWith(text, parts[0]))));
  if (name == "replace" && parts.size() == 2 && !parts[0].empty())
    return done(row, textValue(replaced(text, parts[0], parts[1])));
  if (isOneOf(name, {"lower", "upper"}) && parts.empty())
    return done(row, textValue(inCase(text, name == "lower")));
  if (name == "strip" && parts.empty())
    return done(row, textValue(stripped(text)));
  if (name != "split" || parts.size() > 1 || (!parts.empty() && parts[0].empty()))
    return std::nullopt;
  std::vector<Value> texts;
  for (const std::string &each : parts.empty() ? words(text) : splitAt(text, parts[0]))
    texts.push_back(textValue(each));
  return done(row, listOf(call, row, std::move(texts)));
}

} // namespace devicetidy::python
