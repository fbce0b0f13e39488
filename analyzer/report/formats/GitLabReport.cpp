#include "analyzer/report/formats/ReportRun.h"

#include "analyzer/report/source/Text.h"

#include <nlohmann/json.hpp>

namespace devicetidy {
namespace {

using Json = nlohmann::ordered_json;

// GitLab's documentation, "Code Quality report format": info, minor, major, critical or blocker.
std::string_view severity(const Diagnostic &diagnostic) {
  if (!diagnostic.isActive())
    return "info";
  const std::string_view word = levelWord(diagnostic);
  return word == "error" ? "critical" : word == "warning" ? "major" : "minor";
}

Json issue(const std::string &check, const std::string &description, const std::string &fingerprint,
           std::string_view severity, const Location &where, const ReportRun &run) {
  return {{"description", description},
          {"check_name", check},
          {"fingerprint", fingerprint},
          {"severity", severity},
          {"location",
           {{"path", relativePath(where.file.str(), run.sourceRoot)},
            {"lines", {{"begin", where.valid() ? where.line : 1}}}}}};
}

} // namespace

std::string gitLabReport(const std::vector<Diagnostic> &diagnostics, const ReportRun &run) {
  Json issues = Json::array();
  for (const Diagnostic &diagnostic : diagnostics)
    issues.push_back(issue(diagnostic.check, printable(diagnostic.message), diagnostic.fingerprint,
                           severity(diagnostic), diagnostic.where, run));
  for (const UnitFailure &failure : run.failures)
    issues.push_back(issue("parse-error", printable(failure.text),
                           "parse-error:" + relativePath(failure.where.file.str(), run.sourceRoot),
                           "critical", failure.where, run));
  return issues.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace devicetidy
