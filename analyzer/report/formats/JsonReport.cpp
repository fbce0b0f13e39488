#include "analyzer/report/formats/ReportRun.h"

#include "analyzer/report/source/Text.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace devicetidy {
namespace {

using Json = nlohmann::ordered_json;

Json place(const Location &where, const ReportRun &run, SourceCache &sources) {
  Json result = {{"file", relativePath(where.file.str(), run.sourceRoot)}};
  if (!where.valid())
    return result;
  std::uint32_t above = 0; // lines of other cells
  if (const std::optional<NotebookLine> cell = sources.cellOf(where.file, where.line)) {
    result["cell"] = cell->cell;
    above = where.line - cell->line;
  }
  result["line"] = where.line - above;
  result["column"] = where.column;
  result["endLine"] = where.endLine - std::min(above, where.endLine);
  result["endColumn"] = where.endColumn;
  return result;
}

Json findingObject(const Diagnostic &diagnostic, const ReportRun &run, SourceCache &sources) {
  Json result = {{"check", diagnostic.check},
                 {"level", certainty(diagnostic.level)},
                 {"severity", diagnostic.severity == Severity::Error ? "error" : "warning"},
                 {"message", printable(diagnostic.message)}};
  result.update(place(diagnostic.where, run, sources));
  result["function"] = diagnostic.function;
  if (diagnostic.cause.valid())
    result["cause"] = place(diagnostic.cause, run, sources);
  result["fingerprint"] = diagnostic.fingerprint;
  result["suppressed"] = diagnostic.isSuppressed;
  if (diagnostic.baseline != BaselineState::None)
    result["baselineState"] = diagnostic.baseline == BaselineState::New ? "new" : "unchanged";
  Json notes = Json::array();
  for (const Note &note : diagnostic.notes) {
    notes.push_back(place(note.where, run, sources));
    notes.back()["message"] = printable(note.text);
  }
  result["notes"] = std::move(notes);
  if (!diagnostic.fix || !isUtf8(diagnostic.fix->change.text)) {
    result["fix"] = nullptr;
    return result;
  }
  const Replacement &change = diagnostic.fix->change;
  Json fix = {{"description", printable(diagnostic.fix->description)}};
  fix.update(place(change.where, run, sources));
  fix["offset"] = change.offset;
  fix["length"] = change.length;
  fix["replacement"] = change.text;
  result["fix"] = std::move(fix);
  return result;
}

} // namespace

std::string jsonReport(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                       SourceCache &sources) {
  Json findings = Json::array(), failures = Json::array();
  for (const Diagnostic &diagnostic : diagnostics)
    findings.push_back(findingObject(diagnostic, run, sources));
  for (const UnitFailure &failure : run.failures) {
    failures.push_back(place(failure.where, run, sources));
    failures.back()["message"] = printable(failure.text);
    failures.back()["analysed"] = !failure.isTotal;
  }
  Json report = {{"version", 1},
                 {"tool", {{"name", "device-tidy"}, {"version", run.version}}},
                 {"root", run.sourceRoot},
                 {"exitCode", run.exitCode},
                 {"suppressed", run.suppressed},
                 {"failures", std::move(failures)},
                 {"findings", std::move(findings)}};
  if (run.baseline)
    report["baseline"] = {{"new", run.baseline->added},
                          {"unchanged", run.baseline->unchanged},
                          {"fixed", run.baseline->fixed},
                          {"suppressed", run.baseline->suppressed},
                          {"notLookedAt", run.baseline->notLookedAt}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace devicetidy
