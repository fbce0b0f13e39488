#include "analyzer/report/formats/HtmlExcerpt.h"

#include "analyzer/report/graph/Markup.h"

#include <fmt/format.h>

#include <algorithm>

namespace devicetidy {
namespace {

constexpr std::uint32_t MostLines = 12;
constexpr std::size_t LongestLine = 200, Lead = 60; ///< bytes; shown before the first mark of a longer line

using Columns = std::pair<std::size_t, std::size_t>; ///< bytes of a line from 0, the end is exclusive

/// The part of `where` on line `number`, which has `length` bytes.
Columns columnsOn(const Location &where, std::uint32_t number, std::size_t length) {
  if (number < where.line || number > std::max(where.line, where.endLine) || where.column == 0)
    return {0, 0};
  const std::size_t begin = number == where.line ? where.column - 1 : 0;
  const std::size_t end = number == where.endLine && where.endColumn > 0 ? where.endColumn - 1 : length;
  return {std::min(begin, length), std::min(std::max(end, begin), length)};
}

std::string withTabs(std::string_view text) {
  std::string result;
  for (std::size_t tab; (tab = text.find('\t')) != std::string_view::npos; text.remove_prefix(tab + 1))
    result += escapeMarkup(text.substr(0, tab)) + '\t';
  return result + escapeMarkup(text);
}

class LineWriter {
public:
  LineWriter(const Location &where, const std::vector<SourceMark> &marks) : where(where), marks(marks) {}

  std::string write(std::string_view line, std::uint32_t number) {
    const Columns here = columnsOn(where, number, line.size());
    std::vector<std::size_t> markAt(line.size(), marks.size());
    std::size_t first = here.second > here.first ? here.first : line.size();
    for (std::size_t i = 0; i < marks.size(); ++i) {
      if (marks[i].where.file != where.file)
        continue;
      const auto [begin, end] = columnsOn(marks[i].where, number, line.size());
      for (std::size_t at = begin; at < end; ++at)
        if (markAt[at] == marks.size() || lengthOf(i) < lengthOf(markAt[at]))
          markAt[at] = i;
      if (begin < end)
        first = std::min(first, begin);
    }
    const auto [from, to] = window(line, first);
    std::string text = from > 0 ? "\xE2\x80\xA6" : "";
    for (std::size_t at = from; at < to;) {
      const bool isHere = at >= here.first && at < here.second;
      std::size_t end = at + 1;
      while (end < to && markAt[end] == markAt[at] && (end >= here.first && end < here.second) == isHere)
        ++end;
      text += piece(line.substr(at, end - at), markAt[at], isHere);
      at = end;
    }
    return text + (to < line.size() ? "\xE2\x80\xA6" : "");
  }

private:
  /// Of two marks the inner one is shown.
  std::size_t lengthOf(std::size_t mark) const {
    const Location &place = marks[mark].where;
    return place.endLine > place.line ? static_cast<std::size_t>(-1) : place.endColumn - place.column;
  }

  static Columns window(std::string_view line, std::size_t first) {
    if (line.size() <= LongestLine)
      return {0, line.size()};
    std::size_t begin = first < line.size() && first > Lead ? first - Lead : 0;
    std::size_t end = std::min(line.size(), begin + LongestLine);
    const auto isInside = [&](std::size_t at) {
      return at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80;
    };
    while (begin > 0 && isInside(begin))
      --begin;
    while (end > begin && isInside(end))
      --end;
    return {begin, end};
  }

  std::string piece(std::string_view text, std::size_t mark, bool isHere) const {
    if (mark < marks.size())
      return fmt::format("<mark class=\"{}{}\" title=\"{}\">{}</mark>", marks[mark].style,
                         isHere ? " here" : "", escapeMarkup(marks[mark].hint), withTabs(text));
    return isHere ? "<span class=\"here\">" + withTabs(text) + "</span>" : withTabs(text);
  }

  const Location &where;
  const std::vector<SourceMark> &marks;
};

} // namespace

std::string htmlExcerpt(SourceCache &sources, const Location &where, const std::vector<SourceMark> &marks,
                        std::uint32_t context) {
  if (!where.valid())
    return {};
  std::uint32_t last = where.line;
  if (context > 0) {
    last = std::max(last, where.endLine);
    for (const SourceMark &mark : marks)
      if (mark.where.file == where.file && mark.where.line >= where.line)
        last = std::max(last, mark.where.endLine);
    last = std::min(last, where.line + MostLines);
  }
  const std::uint32_t first = where.line > context ? where.line - context : 1;
  LineWriter writer(where, marks);
  std::string rows;
  for (std::uint32_t number = first; number <= last + context; ++number)
    if (const std::optional<std::string_view> line = sources.line(where.file, number)) {
      const std::optional<NotebookLine> cell = sources.cellOf(where.file, number);
      rows += fmt::format("<span class=\"row{}\"><span class=\"no\">{}</span>{}</span>",
                          context > 0 && number == where.line ? " at" : "", cell ? cell->line : number,
                          writer.write(*line, number));
    }
  return rows.empty() ? std::string() : "<pre>" + rows + "</pre>";
}

} // namespace devicetidy
