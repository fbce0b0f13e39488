#include "analyzer/report/source/Source.h"

#include "analyzer/facts/Language.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace devicetidy {
namespace {

constexpr std::size_t TabStop = 8;
constexpr std::size_t WidestLine = 160;

/// One character of a line as it is printed: its text, its columns on screen and the bytes it was read from.
struct Glyph {
  std::string text;
  std::size_t width;
  std::size_t bytes;
};

struct CodeRange {
  std::uint32_t first, last;
};

template <std::size_t N> bool within(const CodeRange (&ranges)[N], std::uint32_t code) {
  return std::any_of(ranges, ranges + N, [code](CodeRange r) { return code >= r.first && code <= r.last; });
}

/// Columns a terminal gives to a code point: combining marks take none, East Asian wide characters and emoji
/// two.
std::size_t columnsOf(std::uint32_t code) {
  static constexpr CodeRange none[] = {{0x300, 0x36F}, {0x200B, 0x200F}, {0xFE00, 0xFE0F}, {0x20D0, 0x20FF}};
  static constexpr CodeRange two[] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
                                      {0xF900, 0xFAFF}, {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                                      {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
  return within(none, code) ? 0 : within(two, code) ? 2 : 1;
}

constexpr std::string_view Replacement = "\xEF\xBF\xBD"; // U+FFFD

Glyph nextGlyph(std::string_view text) {
  std::uint32_t code = 0;
  const std::size_t length = decodeUtf8(text, code);
  if (length == 0 || (code < 0x20 && code != '\t') || (code >= 0x7F && code < 0xA0))
    return {std::string(Replacement), 1, std::max<std::size_t>(length, 1)};
  return {std::string(text.substr(0, length)), columnsOf(code), length};
}

/// Cuts `snippet` to the part around screen column `caret`. Only called for lines of one-column ASCII text.
void clip(Snippet &snippet, std::size_t caret) {
  const std::size_t begin = caret < WidestLine / 2 ? 0 : caret - WidestLine / 2;
  const bool cutsTail = snippet.source.size() > begin + WidestLine;
  const std::string head = begin ? "..." : "";
  snippet.marks.resize(std::max(snippet.marks.size(), begin), ' ');
  snippet.marks = std::string(head.size(), ' ') + snippet.marks.substr(begin, WidestLine);
  snippet.source = head + snippet.source.substr(begin, WidestLine) + (cutsTail ? "..." : "");
}

} // namespace

std::size_t decodeUtf8(std::string_view text, std::uint32_t &code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    code = lead;
    return 1;
  }
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length)
    return 0;
  code = lead & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
    code = (code << 6) | (byte(i) & 0x3Fu);
  }
  static constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < smallest[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

const SourceCache::File &SourceCache::load(Name name) {
  if (const auto known = files.find(name); known != files.end())
    return known->second;
  std::ifstream stream(name.str(), std::ios::binary);
  std::ostringstream text;
  if (stream)
    text << stream.rdbuf();
  if (!isNotebook(name.view())) {
    provide(name, text.str());
    return files[name];
  }
  Notebook notebook = readNotebook(text.str());
  provide(name, std::move(notebook.code));
  File &file = files[name];
  file.cells = std::move(notebook.lines);
  return file;
}

std::optional<NotebookLine> SourceCache::cellOf(Name name, std::uint32_t line) {
  if (!isNotebook(name.view()))
    return std::nullopt;
  const File &file = load(name);
  return line > 0 && line <= file.cells.size() ? std::optional(file.cells[line - 1]) : std::nullopt;
}

std::string SourceCache::spelledPlace(const Location &where) {
  const std::optional<NotebookLine> cell = cellOf(where.file, where.line);
  const std::string column = ":" + std::to_string(where.column);
  return cell ? "cell " + std::to_string(cell->cell) + ":" + std::to_string(cell->line) + column
              : std::to_string(where.line) + column;
}

Location SourceCache::inFile(const Location &where) {
  const std::optional<NotebookLine> cell = cellOf(where.file, where.line);
  if (!cell)
    return where;
  const std::optional<NotebookLine> last = cellOf(where.file, std::max(where.line, where.endLine));
  return {where.file, cell->inFile, 0, last ? last->inFile : cell->inFile, 0};
}

void SourceCache::provide(Name name, std::string text) {
  File &file = files[name];
  file.text = std::move(text);
  file.starts = {0};
  for (std::size_t i = 0; i < file.text.size(); ++i)
    if (file.text[i] == '\n')
      file.starts.push_back(i + 1);
}

void SourceCache::withhold(Name name) { files[name] = {{}, {0}, {}}; }

std::optional<std::string_view> SourceCache::line(Name name, std::uint32_t number) {
  const File &file = load(name);
  if (number == 0 || number > file.starts.size())
    return std::nullopt;
  const std::size_t start = file.starts[number - 1];
  if (start >= file.text.size())
    return std::nullopt;
  std::string_view line = std::string_view(file.text).substr(start);
  line = line.substr(0, line.find('\n'));
  if (!line.empty() && line.back() == '\r')
    line.remove_suffix(1);
  return line;
}

std::string_view SourceCache::text(const Location &where) {
  const std::optional<std::string_view> whole = line(where.file, where.line);
  if (!whole || where.endLine != where.line || where.column == 0 || where.endColumn <= where.column ||
      where.endColumn > whole->size() + 1)
    return {};
  return whole->substr(where.column - 1, where.endColumn - where.column);
}

std::string_view SourceCache::text(Name file) { return load(file).text; }

std::optional<std::pair<std::size_t, std::size_t>> SourceCache::bytes(const Location &where) {
  const File &file = load(where.file);
  const auto offset = [&](std::uint32_t line, std::uint32_t column) -> std::optional<std::size_t> {
    if (line == 0 || column == 0 || line > file.starts.size())
      return std::nullopt;
    const std::size_t end = line < file.starts.size() ? file.starts[line] : file.text.size() + 1;
    const std::size_t result = file.starts[line - 1] + column - 1;
    return result < end ? std::optional(result) : std::nullopt;
  };
  const auto begin = offset(where.line, where.column), end = offset(where.endLine, where.endColumn);
  if (!begin || !end || *end < *begin)
    return std::nullopt;
  return std::make_pair(*begin, *end);
}

Location SourceCache::range(Name name, std::size_t begin, std::size_t end) {
  const File &file = load(name);
  const auto place = [&](std::size_t offset) {
    const auto next = std::upper_bound(file.starts.begin(), file.starts.end(), offset);
    const auto line = static_cast<std::uint32_t>(next - file.starts.begin());
    return std::make_pair(line, static_cast<std::uint32_t>(offset - *(next - 1) + 1));
  };
  const auto [line, column] = place(begin);
  const auto [endLine, endColumn] = place(end);
  return {name, line, column, endLine, endColumn};
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Glyph glyph = nextGlyph(text);
    result += glyph.text == "\t" ? " " : glyph.text;
    text.remove_prefix(glyph.bytes);
  }
  return result;
}

std::size_t columnWidth(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Glyph glyph = nextGlyph(text);
    width += glyph.width;
    text.remove_prefix(glyph.bytes);
  }
  return width;
}

Snippet drawSnippet(std::string_view line, std::uint32_t caret,
                    const std::vector<std::pair<std::uint32_t, std::uint32_t>> &ranges) {
  const auto underlined = [&](std::size_t column) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const auto &range) { return column >= range.first && column < range.second; });
  };
  Snippet result;
  std::size_t caretAt = 0;
  bool hasCaret = false;
  std::size_t column = 1; // byte column of the current glyph
  while (!line.empty()) {
    Glyph glyph = nextGlyph(line);
    if (glyph.text == "\t") {
      glyph.width = TabStop - result.marks.size() % TabStop;
      glyph.text.assign(glyph.width, ' ');
    }
    std::string marks(glyph.width, underlined(column) ? '~' : ' ');
    if (caret >= column && caret < column + glyph.bytes) {
      caretAt = result.marks.size();
      hasCaret = true;
      marks = marks.empty() ? "^" : "^" + marks.substr(1);
    }
    result.source += glyph.text;
    result.marks += marks;
    column += glyph.bytes;
    line.remove_prefix(glyph.bytes);
  }
  if (!hasCaret) { // at the end of the line
    caretAt = result.marks.size();
    result.marks += '^';
  }
  // Cutting by columns needs bytes and columns to agree.
  if (result.source.size() > WidestLine && result.source.size() <= result.marks.size())
    clip(result, caretAt);
  result.marks.erase(result.marks.find_last_not_of(' ') + 1);
  return result;
}

} // namespace devicetidy
