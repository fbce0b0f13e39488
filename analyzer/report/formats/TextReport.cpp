#include "analyzer/report/formats/TextReport.h"

#include "analyzer/report/formats/ReportRun.h"

#include <fmt/format.h>

#include <algorithm>

namespace devicetidy {
namespace {

/// Terminal colours, the ones clang uses.
struct Palette {
  std::string_view bold, warning, error, note, caret, reset;
};
constexpr Palette Plain = {};
constexpr Palette Coloured = {"\033[1m", "\033[1;35m", "\033[1;31m", "\033[1;36m", "\033[1;32m", "\033[0m"};

class Writer {
public:
  Writer(SourceCache &sources, bool colour, std::string &out)
      : sources(sources), palette(colour ? Coloured : Plain), out(out) {}

  void write(const Diagnostic &diagnostic) {
    const bool isError = diagnostic.severity == Severity::Error;
    head(diagnostic.where, isError ? "error" : "warning", isError ? palette.error : palette.warning,
         fmt::format("{} [{}]{}", printable(diagnostic.message), diagnostic.check, inactiveMark(diagnostic)),
         true);
    snippet(diagnostic.where, diagnostic.ranges);
    for (const Note &note : diagnostic.notes) {
      head(note.where, "note", palette.note, printable(note.text), false);
      snippet(note.where, {});
    }
  }

private:
  void head(const Location &where, std::string_view kind, std::string_view colour, const std::string &text,
            bool bold) {
    out += fmt::format("{}{}:{}: {}{}{}: {}{}{}{}\n", palette.bold, where.file.str(),
                       sources.spelledPlace(where), palette.reset, colour, kind, palette.reset,
                       bold ? palette.bold : "", text, bold ? palette.reset : "");
  }

  void snippet(const Location &where, const std::vector<Location> &marked) {
    const std::optional<std::string_view> line = sources.line(where.file, where.line);
    if (!line)
      return;
    const Snippet drawn = drawSnippet(*line, where.column, columns(where, marked, *line));
    const std::optional<NotebookLine> cell = sources.cellOf(where.file, where.line);
    out += fmt::format("{:>5} | {}\n", cell ? cell->line : where.line, drawn.source);
    out += fmt::format("{:>5} | {}{}{}\n", "", palette.caret, drawn.marks, palette.reset);
  }

  using Columns = std::pair<std::uint32_t, std::uint32_t>;

  /// The parts of the line of `where` to underline: `marked` as far as it is on that line, else `where`
  /// itself.
  static std::vector<Columns> columns(const Location &where, const std::vector<Location> &marked,
                                      std::string_view line) {
    std::vector<Columns> result;
    const auto mark = [&](const Location &place) {
      if (place.file != where.file || place.line != where.line)
        return;
      const auto lineEnd = static_cast<std::uint32_t>(line.size() + 1);
      const std::uint32_t end = place.endLine == place.line ? std::min(place.endColumn, lineEnd) : lineEnd;
      if (place.endLine >= place.line && end > place.column)
        result.emplace_back(place.column, end);
    };
    std::for_each(marked.begin(), marked.end(), mark);
    if (result.empty())
      mark(where);
    return result;
  }

  SourceCache &sources;
  const Palette &palette;
  std::string &out;
};

} // namespace

void writeTextReport(const std::vector<Diagnostic> &diagnostics, SourceCache &sources, bool colour,
                     std::string &out) {
  Writer writer(sources, colour, out);
  for (const Diagnostic &diagnostic : diagnostics)
    writer.write(diagnostic);
}

} // namespace devicetidy
