#include "analyzer/solve/library/config/MapText.h"

#include "analyzer/models/Models.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace devicetidy {
namespace {

bool isAlnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool isUpper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool isSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// The words of an identifier or option, in lower case: "m_deviceMap" is {m, device, map}.
std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words;
  bool inWord = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!isAlnum(text[i])) {
      inWord = false;
      continue;
    }
    if (!inWord || (isUpper(text[i]) && i > 0 && !isUpper(text[i - 1])))
      words.emplace_back();
    words.back() += lower(text[i]);
    inWord = true;
  }
  return words;
}

// How many words at the end of a name are the key of a device map ("m_deviceMap": 2); 0 when it is none.
std::size_t wordsOfKey(const std::vector<std::string> &words) {
  if (words.empty() || models::hasRole(words.front(), "no_map"))
    return 0;
  if (models::hasRole(words.back(), "map_key"))
    return 1;
  return words.size() > 1 && models::hasRole(words[words.size() - 2] + ' ' + words.back(), "map_key") ? 2 : 0;
}

// Has a method, or the first word of its name, this role?
bool isNamed(std::string_view method, std::string_view role) {
  const std::vector<std::string> words = wordsOf(method);
  return models::hasRole(method, role) || (!words.empty() && models::hasRole(words.front(), role));
}

bool matchesAt(std::string_view text, std::size_t at, std::string_view word) {
  if (at + word.size() > text.size())
    return false;
  for (std::size_t i = 0; i < word.size(); ++i)
    if (lower(text[at + i]) != word[i])
      return false;
  return true;
}

// The end of a key `device_map` that starts at `at`; npos when none does.
std::size_t keyEnd(std::string_view text, std::size_t at) {
  constexpr std::string_view first = "device", second = "map";
  if (!matchesAt(text, at, first))
    return std::string_view::npos;
  std::size_t next = at + first.size();
  if (next < text.size() && (text[next] == '_' || text[next] == '-'))
    ++next;
  if (!matchesAt(text, next, second))
    return std::string_view::npos;
  next += second.size();
  return next < text.size() && (isAlnum(text[next]) || text[next] == '_') ? std::string_view::npos : next;
}

std::size_t skipSpace(std::string_view text, std::size_t at) {
  while (at < text.size() && isSpace(text[at]))
    ++at;
  return at;
}

// Where the value begins after a key that ends at `at`: behind `=`, `:`, `,`, or a blank after a command-line
// option.
std::size_t valueStart(std::string_view text, std::size_t at, bool isOption) {
  while (at < text.size() && (text[at] == '"' || text[at] == '\'' || text[at] == '\\' || text[at] == ']'))
    ++at;
  const std::size_t separator = skipSpace(text, at);
  if (separator >= text.size())
    return std::string_view::npos;
  const char c = text[separator];
  if (c == '=' || c == ':' || c == ',') {
    const bool isComparison = c == '=' && separator + 1 < text.size() && text[separator + 1] == '=';
    return isComparison ? std::string_view::npos : skipSpace(text, separator + 1);
  }
  return isOption && separator > at ? separator : std::string_view::npos;
}

// `'auto' if world_size == 1 else None`: which one it is only the run knows.
bool isConditional(std::string_view rest) {
  std::size_t at = 0;
  while (at < rest.size() && (rest[at] == '"' || rest[at] == '\'' || rest[at] == '\\'))
    ++at;
  at = skipSpace(rest, at);
  return at > 0 && matchesAt(rest, at, "if ");
}

std::string mapAt(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == '"' || text[at] == '\'' || text[at] == '\\'))
    ++at;
  if (at < text.size() && text[at] == '{') {
    const std::size_t entries = entriesOf(text.substr(at));
    return entries > 1 ? "{" + std::to_string(entries) + " entries}" : std::string();
  }
  std::size_t end = at;
  while (end < text.size() && (isAlnum(text[end]) || text[end] == '_'))
    ++end;
  const std::string_view word = text.substr(at, end - at);
  return isSpreadWord(word) && !isConditional(text.substr(end)) ? std::string(word) : std::string();
}

} // namespace

bool isDeviceMapKey(std::string_view key) { return wordsOfKey(wordsOf(key)) > 0; }

bool isDeviceMapSetter(std::string_view method) {
  const std::vector<std::string> words = wordsOf(method);
  const std::size_t ofKey = wordsOfKey(words);
  return ofKey > 0 && (words.size() == ofKey ||
                       (words.size() == ofKey + 1 && models::hasRole(words.front(), "map_setter")));
}

bool isOptionSetter(std::string_view method) { return isNamed(method, "option_setter"); }

bool isOptionGetter(std::string_view method) { return isNamed(method, "option_getter"); }

bool isSpreadWord(std::string_view word) {
  std::string text;
  std::transform(word.begin(), word.end(), std::back_inserter(text), lower);
  return models::hasRole(text, "map_value");
}

std::string mapInText(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = keyEnd(text, at);
    if (end == std::string_view::npos || (at > 0 && isAlnum(text[at - 1]) && !isUpper(text[at])))
      continue;
    const bool isOption = at > 1 && text[at - 1] == '-' && text[at - 2] == '-';
    const std::size_t value = valueStart(text, end, isOption);
    if (value != std::string_view::npos)
      if (std::string map = mapAt(text, value); !map.empty())
        return map;
  }
  return {};
}

std::size_t entriesOf(std::string_view text) {
  if (text.empty() || text.front() != '{')
    return 0;
  std::size_t depth = 0, entries = 0;
  char quote = 0;
  for (char c : text) {
    if (quote) {
      quote = c == quote ? 0 : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth == 0)
        break;
    } else if (c == ':' && depth == 1) {
      ++entries;
    }
  }
  return entries;
}

std::string withoutComments(std::string_view python) {
  std::string text(python);
  char quote = 0;
  bool inComment = false;
  for (char &c : text) {
    if (c == '\n') {
      inComment = false;
    } else if (inComment) {
      c = ' ';
    } else if (quote) {
      quote = c == quote ? 0 : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      inComment = true;
      c = ' ';
    }
  }
  return text;
}

// A launcher counts where a command stands: "pip install deepspeed" starts nothing.
std::string_view launcherIn(std::string_view text) {
  const std::string_view name = models::findRole(text, "launcher");
  for (std::size_t at = 0; !name.empty() && (at = text.find(name, at)) != std::string_view::npos; ++at) {
    const std::size_t end = at + name.size();
    if (end < text.size() && !isSpace(text[end]) && text[end] != '"' && text[end] != '\'')
      continue;
    const std::size_t word = at == 0 ? std::string_view::npos : text.find_last_of(" \t\n;&|(\"'", at - 1);
    const std::size_t start = word == std::string_view::npos ? 0 : word + 1;
    if (start != at && text[at - 1] != '/')
      continue;
    std::size_t before = start;
    while (before > 0 && isSpace(text[before - 1]))
      --before;
    const std::size_t previous =
        before == 0 ? std::string_view::npos : text.find_last_of(" \t\n", before - 1);
    const std::string_view last =
        text.substr(previous == std::string_view::npos ? 0 : previous + 1,
                    before - (previous == std::string_view::npos ? 0 : previous + 1));
    const bool isCommand = last.empty() ||
                           std::string_view(";&|(\"'").find(last.back()) != std::string_view::npos ||
                           last.find('=') != std::string_view::npos || models::hasRole(last, "command");
    if (isCommand)
      return name;
  }
  return {};
}

} // namespace devicetidy
