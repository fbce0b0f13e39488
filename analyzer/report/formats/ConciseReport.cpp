//===- ConciseReport.cpp - one line per finding, as flake8 and ruff print -===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/report/formats/ReportRun.h"
#include "analyzer/report/source/Text.h"

#include <fmt/format.h>

namespace devicetidy {

std::string conciseReport(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                          const std::string &folder, SourceCache &sources) {
  std::string text;
  const auto add = [&](const Location &where, const std::string &check, const std::string &message) {
    text += fmt::format("{}:{}: {} {}\n", relativePath(where.file.str(), folder),
                        sources.spelledPlace(where.valid() ? where : Location{where.file, 1, 1, 1, 1}), check,
                        message);
  };
  for (const Diagnostic &each : diagnostics)
    add(each.where, each.check, printable(each.message) + std::string(inactiveMark(each)));
  static constexpr std::string_view mark = "error: ";
  for (const UnitFailure &failure : run.failures) {
    const std::string said = printable(failure.text);
    add(failure.where, "parse-error", said.substr(startsWith(said, mark) ? mark.size() : 0));
  }
  return text;
}

} // namespace devicetidy
