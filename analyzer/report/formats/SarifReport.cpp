//===- SarifReport.cpp - findings as SARIF 2.1.0 -------------------------===//
//
// The standard is OASIS "Static Analysis Results Interchange Format (SARIF) Version 2.1.0". GitHub rejects a
// file beyond its limits as a whole, so what exceeds them is left out here, and said.
//
//===----------------------------------------------------------------------===//
#include "analyzer/report/diagnostic/NoLint.h"
#include "analyzer/report/formats/ReportRun.h"
#include "analyzer/report/source/Text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>

namespace devicetidy {
namespace {

using Json = nlohmann::ordered_json;

// docs.github.com, "SARIF results exceed one or more limits" and "SARIF support for code scanning".
constexpr std::size_t ResultLimit = 25000, RelatedLimit = 1000, FlowLimit = 1000, TextLimit = 1024;

constexpr std::string_view schema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
constexpr std::string_view rootId = "SRCROOT";

/// The path part of a URI. Everything but what RFC 3986 leaves unreserved is escaped, and the slashes stay.
std::string uriPath(std::string_view path) {
  std::string result;
  for (char c : path) {
    const bool isPlain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                         c == '-' || c == '.' || c == '_' || c == '~' || c == '/';
    result += isPlain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

/// A message without links: SARIF reads "[text](target)" as one.
Json message(const std::string &text) {
  std::string escaped;
  for (char c : cutText(printable(text), TextLimit)) {
    if (c == '[' || c == ']' || c == '\\')
      escaped += '\\';
    escaped += c;
  }
  return {{"text", escaped}};
}

/// The first paragraph of a page below its title, on one line.
std::string firstParagraph(std::string_view page) {
  const std::size_t title = page.find("\n\n");
  if (title == std::string_view::npos)
    return {};
  page = page.substr(title + 2);
  std::string text(page.substr(0, page.find("\n\n")));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

class SarifWriter {
public:
  SarifWriter(const ReportRun &run, SourceCache &sources) : run(run), sources(sources) {}

  Json log(const std::vector<Diagnostic> &diagnostics) {
    Json driver = {{"name", "device-tidy"},
                   {"semanticVersion", run.version},
                   {"rules", rules()},
                   {"notifications", Json::array({{{"id", "parse-error"}}, {{"id", "results-left-out"}}})}};
    Json results = Json::array();
    const std::vector<const Diagnostic *> shown = withinLimit(diagnostics);
    for (const Diagnostic *diagnostic : shown)
      results.push_back(result(*diagnostic));
    Json sarif = {{"tool", {{"driver", std::move(driver)}}},
                  {"invocations", Json::array({invocation(diagnostics.size() - shown.size())})}};
    if (!run.sourceRoot.empty())
      sarif["originalUriBaseIds"] = {{rootId, {{"uri", "file://" + uriPath(run.sourceRoot) + "/"}}}};
    sarif["columnKind"] = "utf16CodeUnits";
    sarif["results"] = std::move(results);
    return {{"$schema", schema}, {"version", "2.1.0"}, {"runs", Json::array({std::move(sarif)})}};
  }

private:
  Json rules() {
    Json rules = Json::array();
    for (const CheckInfo *check : run.checks) {
      ruleIndices[std::string(check->name)] = rules.size();
      const std::string page(check->page);
      const std::string full = firstParagraph(page);
      rules.push_back({{"id", check->name},
                       {"shortDescription", {{"text", cutText(std::string(check->summary), TextLimit)}}},
                       {"fullDescription",
                        {{"text", cutText(full.empty() ? std::string(check->summary) : full, TextLimit)}}},
                       {"defaultConfiguration", {{"level", ruleLevel(check->level)}}},
                       {"help", {{"text", page}, {"markdown", page}}},
                       {"properties", {{"tags", {"correctness", "device", "libtorch"}}}}});
      addHelpUri(rules.back(), fmt::format("checks/{}.md", check->name));
    }
    ruleIndices[std::string(noLintCheck)] = rules.size();
    rules.push_back(
        {{"id", noLintCheck},
         {"shortDescription", {{"text", "a NOLINT comment suppresses nothing or has no matching comment"}}},
         {"defaultConfiguration", {{"level", "error"}}}});
    addHelpUri(rules.back(), "suppressions.md");
    return rules;
  }

  void addHelpUri(Json &rule, const std::string &page) const {
    const std::string &place = run.documentation;
    const bool isAddress = place.find("://") != std::string::npos;
    if (!place.empty())
      rule["helpUri"] = (isAddress ? place : "file://" + uriPath(place)) + "/" + page;
  }

  static std::string_view ruleLevel(Level level) {
    Diagnostic diagnostic;
    diagnostic.level = level;
    return levelWord(diagnostic);
  }

  /// The findings of the highest levels when there are too many, in the order of the report.
  static std::vector<const Diagnostic *> withinLimit(const std::vector<Diagnostic> &diagnostics) {
    std::vector<const Diagnostic *> shown;
    std::array<std::size_t, 3> room = {};
    std::size_t left = ResultLimit;
    for (std::size_t level = 0; level < room.size(); ++level) {
      const auto isOfLevel = [&](const Diagnostic &each) {
        return static_cast<std::size_t>(each.level) == level;
      };
      const auto count = std::count_if(diagnostics.begin(), diagnostics.end(), isOfLevel);
      room[level] = std::min(left, static_cast<std::size_t>(count));
      left -= room[level];
    }
    for (const Diagnostic &diagnostic : diagnostics)
      if (std::size_t &places = room[static_cast<std::size_t>(diagnostic.level)]; places > 0) {
        --places;
        shown.push_back(&diagnostic);
      }
    return shown;
  }

  Json invocation(std::size_t leftOut) {
    const bool isTotal = std::any_of(run.failures.begin(), run.failures.end(),
                                     [](const UnitFailure &failure) { return failure.isTotal; });
    Json notifications = Json::array();
    for (const UnitFailure &failure : run.failures) {
      Json entry = {{"descriptor", {{"id", "parse-error"}, {"index", 0}}},
                    {"level", "error"},
                    {"message", message(failure.text + (failure.isTotal
                                                            ? "; nothing of this file was analysed"
                                                            : "; what could be parsed of it was analysed"))}};
      if (failure.where.file)
        entry["locations"] = Json::array({location(failure.where)});
      notifications.push_back(std::move(entry));
    }
    if (leftOut)
      notifications.push_back({{"descriptor", {{"id", "results-left-out"}, {"index", 1}}},
                               {"level", "warning"},
                               {"message", message(fmt::format("{} results beyond the first {} are left out",
                                                               leftOut, ResultLimit))}});
    return {{"executionSuccessful", !isTotal},
            {"exitCode", run.exitCode},
            {"toolExecutionNotifications", std::move(notifications)}};
  }

  Json artifact(const std::string &path) const {
    const std::string relative = relativePath(path, run.sourceRoot);
    if (relative != path)
      return {{"uri", uriPath(relative)}, {"uriBaseId", rootId}};
    return {{"uri", "file://" + uriPath(path)}};
  }

  std::uint32_t column(Name file, std::uint32_t line, std::uint32_t byteColumn) {
    return utf16Column(sources.line(file, line).value_or(std::string_view()), byteColumn);
  }

  Json region(const Location &where) {
    Json result = {{"startLine", where.line}};
    if (where.column == 0)
      return result;
    result["startColumn"] = column(where.file, where.line, where.column);
    const bool hasEnd =
        where.endLine > where.line || (where.endLine == where.line && where.endColumn >= where.column);
    if (hasEnd) {
      result["endLine"] = where.endLine;
      result["endColumn"] = column(where.file, where.endLine, where.endColumn);
    }
    return result;
  }

  Json location(const Location &where) {
    Json physical = {{"artifactLocation", artifact(where.file.str())}};
    if (where.valid())
      physical["region"] = region(where);
    return {{"physicalLocation", std::move(physical)}};
  }

  Json location(const Note &note) {
    Json result = location(note.where);
    result["message"] = message(note.text);
    return result;
  }

  Json threadFlow(const std::vector<Note> &flow) {
    Json steps = Json::array();
    // The end of a very long history is kept, because the operation is there.
    const std::size_t first = flow.size() > FlowLimit ? flow.size() - FlowLimit : 0;
    for (std::size_t i = first; i < flow.size(); ++i)
      steps.push_back({{"location", location(flow[i])}});
    return {{"locations", std::move(steps)}};
  }

  Json fix(const Fix &fix) {
    const Replacement &change = fix.change;
    return {
        {"description", message(fix.description)},
        {"artifactChanges",
         Json::array({{{"artifactLocation", artifact(change.where.file.str())},
                       {"replacements", Json::array({{{"deletedRegion", region(change.where)},
                                                      {"insertedContent", {{"text", change.text}}}}})}}})}};
  }

  Json result(const Diagnostic &diagnostic) {
    Json primary = location(diagnostic.where);
    if (!diagnostic.function.empty())
      primary["logicalLocations"] = Json::array({{{"fullyQualifiedName", printable(diagnostic.function)}}});
    Json result = {{"ruleId", diagnostic.check},
                   {"ruleIndex", ruleIndices.at(diagnostic.check)},
                   {"level", levelWord(diagnostic)},
                   {"message", message(diagnostic.message)},
                   {"locations", Json::array({std::move(primary)})}};
    Json related = Json::array();
    for (std::size_t i = 0; i < std::min(diagnostic.related.size(), RelatedLimit); ++i) {
      Json place = location(diagnostic.related[i]);
      place["id"] = i + 1;
      related.push_back(std::move(place));
    }
    if (!related.empty())
      result["relatedLocations"] = std::move(related);
    Json flows = Json::array();
    for (const std::vector<Note> &flow : diagnostic.flows)
      flows.push_back(threadFlow(flow));
    if (!flows.empty())
      result["codeFlows"] = Json::array({{{"threadFlows", std::move(flows)}}});
    if (diagnostic.fix && isUtf8(diagnostic.fix->change.text))
      result["fixes"] = Json::array({fix(*diagnostic.fix)});
    if (!diagnostic.fingerprint.empty())
      result["partialFingerprints"] = {{"deviceTidy/v1", diagnostic.fingerprint}};
    if (diagnostic.baseline != BaselineState::None)
      result["baselineState"] = diagnostic.baseline == BaselineState::New ? "new" : "unchanged";
    if (diagnostic.isSuppressed)
      result["suppressions"] = Json::array({{{"kind", "inSource"}}});
    result["properties"] = {{"certainty", certainty(diagnostic.level)}};
    if (diagnostic.cause.valid())
      result["properties"]["cause"] = relativePath(diagnostic.cause.file.str(), run.sourceRoot);
    return result;
  }

  const ReportRun &run;
  SourceCache &sources;
  std::map<std::string, std::size_t> ruleIndices;
};

} // namespace

std::string sarifReport(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                        SourceCache &sources) {
  const Json log = SarifWriter(run, sources).log(diagnostics);
  return log.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace devicetidy
