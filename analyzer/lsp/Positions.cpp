#include "analyzer/lsp/Positions.h"

#include "analyzer/report/source/Text.h"

#include <algorithm>

namespace devicetidy::lsp {
namespace {

using llvm::lsp::Position;

Position positionOf(SourceCache &sources, Name file, std::uint32_t line, std::uint32_t column) {
  const std::string_view text = sources.line(file, line).value_or(std::string_view());
  const auto byteColumn =
      static_cast<std::uint32_t>(std::min<std::size_t>(std::max<std::uint32_t>(column, 1), text.size() + 1));
  return {static_cast<int>(line) - 1, static_cast<int>(utf16Column(text, byteColumn)) - 1};
}

bool isNamePart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool hasEnd(const Location &where) {
  return where.endLine > where.line || (where.endLine == where.line && where.endColumn > where.column);
}

/// The byte column behind the name at `column`, or behind the one character that is not part of a name.
std::uint32_t endOfName(std::string_view line, std::uint32_t column) {
  std::size_t end = column ? column - 1 : 0;
  while (end < line.size() && isNamePart(line[end]))
    ++end;
  return static_cast<std::uint32_t>(end) + (end + 1 == column ? 2 : 1);
}

} // namespace

llvm::lsp::Range toEditedRange(SourceCache &sources, const Location &where) {
  if (hasEnd(where))
    return toRange(sources, where);
  const Position begin = positionOf(sources, where.file, where.line, where.column);
  return {begin, begin};
}

llvm::lsp::Range toRange(SourceCache &sources, const Location &where) {
  if (!where.valid())
    return {};
  const std::string_view line = sources.line(where.file, where.line).value_or(std::string_view());
  return {positionOf(sources, where.file, where.line, where.column),
          hasEnd(where) ? positionOf(sources, where.file, where.endLine, where.endColumn)
                        : positionOf(sources, where.file, where.line, endOfName(line, where.column))};
}

std::size_t offsetOf(std::string_view text, const Position &position) {
  std::size_t offset = 0;
  for (int line = 0; line < position.line; ++line) {
    const std::size_t end = text.find_first_of("\r\n", offset);
    if (end == std::string_view::npos)
      return text.size();
    offset = end + (text.substr(end, 2) == "\r\n" ? 2 : 1);
  }
  for (int units = 0; units < position.character && offset < text.size();) {
    if (text[offset] == '\n' || text[offset] == '\r')
      break;
    std::uint32_t code = 0;
    const std::size_t length = decodeUtf8(text.substr(offset), code);
    offset += std::max<std::size_t>(length, 1);
    units += length && code > 0xFFFF ? 2 : 1;
  }
  return offset;
}

} // namespace devicetidy::lsp
