#include "doctor/JsonText.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace devicerun::doctor {
namespace {

using nlohmann::json;

std::size_t endOfString(const std::string &text, std::size_t quote) {
  for (std::size_t i = quote + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"' || text[i] == '\n')
      return i + 1;
  }
  return text.size();
}

/// The end of the comment that begins here; `begin` when none does.
std::size_t endOfComment(const std::string &text, std::size_t begin) {
  if (text[begin] == '#' || text.compare(begin, 2, "//") == 0)
    return std::min(text.size(), text.find('\n', begin));
  if (text.compare(begin, 2, "/*") != 0)
    return begin;
  const std::size_t end = text.find("*/", begin + 2);
  return end == std::string::npos ? text.size() : end + 2;
}

} // namespace

JsonText parseJson(const std::string &text) {
  JsonText result;
  std::vector<std::set<std::string>> names;
  // The names of an object are one level deeper than its beginning.
  const auto look = [&](int depth, json::parse_event_t event, json &value) {
    const auto level = static_cast<std::size_t>(depth);
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      result.tooDeep = result.tooDeep || depth > kDeepestJson;
      if (depth > kDeepestJson)
        return false;
      names.resize(std::max(names.size(), level + 2));
      names[level + 1].clear();
    } else if (event == json::parse_event_t::key && level < names.size()) {
      const auto name = value.get<std::string>();
      if (!names[level].insert(name).second && result.repeated.empty())
        result.repeated = name;
    }
    return true;
  };
  result.root = json::parse(text, look);
  return result;
}

std::string asStrictJson(const std::string &text) {
  std::string strict = text;
  std::size_t comma = std::string::npos; // the last one, while only blanks and comments came after it
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t afterComment = endOfComment(text, i);
    if (afterComment > i) {
      std::replace_if(
          strict.begin() + static_cast<std::ptrdiff_t>(i),
          strict.begin() + static_cast<std::ptrdiff_t>(afterComment), [](char c) { return c != '\n'; }, ' ');
      i = afterComment;
      continue;
    }
    if ((text[i] == '}' || text[i] == ']') && comma != std::string::npos)
      strict[comma] = ' ';
    if (text[i] == ',')
      comma = i;
    else if (!std::isspace(static_cast<unsigned char>(text[i])))
      comma = std::string::npos;
    i = text[i] == '"' ? endOfString(text, i) : i + 1;
  }
  return strict;
}

} // namespace devicerun::doctor
