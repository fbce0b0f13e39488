#include "analyzer/report/formats/ReportRun.h"

#include "analyzer/report/source/Text.h"

#include <fmt/format.h>

#include <algorithm>

namespace devicetidy {
namespace {

/// The runner splits a command at line ends, and its properties at commas and colons.
std::string escaped(std::string_view text, bool isProperty) {
  std::string result;
  for (char c : text) {
    const bool isSpecial = c == '%' || c == '\r' || c == '\n' || (isProperty && (c == ':' || c == ','));
    result += isSpecial ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return result;
}

std::string placeOf(const Location &where, const ReportRun &run, SourceCache &sources) {
  std::string text = "file=" + escaped(relativePath(where.file.str(), run.sourceRoot), true);
  if (!where.valid())
    return text;
  const auto column = [&](std::uint32_t line, std::uint32_t bytes) {
    return utf16Column(sources.line(where.file, line).value_or(std::string_view()), bytes);
  };
  const std::uint32_t endLine = std::max(where.line, where.endLine);
  text += fmt::format(",line={},endLine={}", where.line, endLine);
  if (where.column == 0 || endLine != where.line) // only a range on one line has columns
    return text;
  text += fmt::format(",col={}", column(where.line, where.column));
  if (where.endColumn > where.column)
    text += fmt::format(",endColumn={}", column(endLine, where.endColumn));
  return text;
}

} // namespace

std::string gitHubReport(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                         SourceCache &sources) {
  std::string text;
  for (const Diagnostic &diagnostic : diagnostics) {
    std::string message = printable(diagnostic.message);
    for (const Note &note : diagnostic.notes)
      message += fmt::format("\n{}:{}: {}", relativePath(note.where.file.str(), run.sourceRoot),
                             note.where.line, printable(note.text));
    const std::string_view word = !diagnostic.isActive() ? "note" : levelWord(diagnostic);
    text += fmt::format("::{} {},title={}::{}\n", word == "note" ? "notice" : word,
                        placeOf(diagnostic.where, run, sources), escaped(diagnostic.check, true),
                        escaped(message, false));
  }
  for (const UnitFailure &failure : run.failures)
    text += fmt::format("::error {},title=device-tidy::{}\n", placeOf(failure.where, run, sources),
                        escaped(printable(failure.text), false));
  return text;
}

} // namespace devicetidy
