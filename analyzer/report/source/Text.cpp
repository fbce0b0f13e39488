#include "analyzer/report/source/Text.h"

#include "analyzer/report/source/Source.h"

namespace devicetidy {

std::string relativePath(const std::string &path, const std::string &root) {
  const bool isBelow = !root.empty() && path.size() > root.size() + 1 && path[root.size()] == '/' &&
                       path.compare(0, root.size(), root) == 0;
  return isBelow ? path.substr(root.size() + 1) : path;
}

std::uint32_t utf16Column(std::string_view line, std::uint32_t byteColumn) {
  std::uint32_t column = 1;
  std::size_t at = 0;
  const std::size_t end = byteColumn > 0 ? byteColumn - 1 : 0;
  while (at < end && at < line.size()) {
    std::uint32_t code = 0;
    const std::size_t length = decodeUtf8(line.substr(at), code);
    column += length > 0 && code > 0xFFFF ? 2 : 1;
    at += length > 0 ? length : 1;
  }
  return column + static_cast<std::uint32_t>(end > at ? end - at : 0); // behind the end of the line
}

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    std::uint32_t code = 0;
    const std::size_t length = decodeUtf8(text, code);
    if (length == 0)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string cutText(std::string text, std::size_t limit) {
  static constexpr std::string_view dots = "...";
  if (text.size() <= limit)
    return text;
  std::size_t end = limit - dots.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end) + std::string(dots);
}

} // namespace devicetidy
