#include "analyzer/report/graph/Markup.h"

#include "analyzer/report/source/Source.h"

#include <algorithm>

namespace devicetidy {
namespace {

constexpr std::string_view Replacement = "\xEF\xBF\xBD"; // U+FFFD
constexpr std::string_view Ellipsis = "\xE2\x80\xA6";

/// Directional overrides and isolates, and what XML does not allow.
bool isRefused(std::uint32_t code) {
  return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) ||
         (code & 0xFFFE) == 0xFFFE;
}

} // namespace

std::string escapeMarkup(std::string_view text) {
  const std::string plain = printable(text);
  std::string result;
  result.reserve(plain.size());
  for (std::string_view rest = plain; !rest.empty();) {
    std::uint32_t code = 0;
    const std::size_t length = decodeUtf8(rest, code);
    if (code == '&')
      result += "&amp;";
    else if (code == '<')
      result += "&lt;";
    else if (code == '>')
      result += "&gt;";
    else if (code == '"')
      result += "&quot;";
    else if (code == '\'')
      result += "&#39;";
    else
      result += isRefused(code) ? Replacement : rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return result;
}

std::string fitColumns(std::string_view text, std::size_t columns) {
  if (columnWidth(text) <= columns)
    return std::string(text);
  std::size_t end = 0, width = 1; // of the ellipsis
  while (end < text.size()) {
    std::uint32_t code = 0;
    const std::size_t length = std::max<std::size_t>(decodeUtf8(text.substr(end), code), 1);
    width += columnWidth(text.substr(end, length));
    if (width > columns)
      break;
    end += length;
  }
  return std::string(text.substr(0, end)) + std::string(Ellipsis);
}

std::string_view fileName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

} // namespace devicetidy
