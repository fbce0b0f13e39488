#include "doctor/YamlLines.h"

#include "base/Text.h"

namespace devicerun::doctor {

std::string unquotedYaml(std::string_view text) {
  std::string_view inner = trimmed(text);
  if (inner.size() >= 2 && (inner.front() == '"' || inner.front() == '\'') && inner.back() == inner.front())
    inner = inner.substr(1, inner.size() - 2);
  return std::string(inner);
}

std::string withoutYamlComment(const std::string &line) {
  for (std::size_t hash = line.find('#'); hash != std::string::npos; hash = line.find('#', hash + 1))
    if (hash == 0 || line[hash - 1] == ' ' || line[hash - 1] == '\t')
      return line.substr(0, hash);
  return line;
}

std::optional<YamlLine> readYamlLine(const std::string &line) {
  const std::string text = withoutYamlComment(line);
  const std::size_t indent = text.find_first_not_of(" \t-");
  const std::size_t colon = text.find(": ") != std::string::npos                    ? text.find(": ")
                            : !trimmed(text).empty() && trimmed(text).back() == ':' ? text.rfind(':')
                                                                                    : std::string::npos;
  if (indent == std::string::npos || colon == std::string::npos || colon < indent)
    return std::nullopt;
  return YamlLine{indent, unquotedYaml(std::string_view(text).substr(indent, colon - indent)),
                  unquotedYaml(std::string_view(text).substr(colon + 1))};
}

} // namespace devicerun::doctor
