// Reading and writing the report; FindingsVerdict.cpp compares it with a run.
#include "base/AtomicFile.h"
#include "base/RunError.h"
#include "records/Findings.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

namespace devicerun {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const Json &member(const Json &object, const char *name) {
  static const Json none;
  if (!object.is_object())
    return none;
  auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string text(const Json &value) { return value.is_string() ? value.get<std::string>() : ""; }

int number(const Json &value, int fallback) {
  return value.is_number_integer() ? value.get<int>() : fallback;
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string percentDecoded(const std::string &uri) {
  std::string decoded;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    int high = i + 2 < uri.size() ? hexDigit(uri[i + 1]) : -1;
    int low = i + 2 < uri.size() ? hexDigit(uri[i + 2]) : -1;
    if (uri[i] != '%' || high < 0 || low < 0) {
      decoded.push_back(uri[i]);
      continue;
    }
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

/// The path a file URI names, or the unchanged URI when it is relative.
std::string pathOf(const std::string &uri) {
  constexpr std::string_view scheme = "file://";
  std::string decoded = percentDecoded(uri);
  if (decoded.compare(0, scheme.size(), scheme) != 0)
    return decoded;
  std::size_t path = decoded.find('/', scheme.size()); // behind the host
  return path == std::string::npos ? "" : decoded.substr(path);
}

/// Follows uriBaseId through originalUriBaseIds; bases may have bases.
std::string resolvedPath(const Json &artifact, const Json &bases) {
  std::string path = pathOf(text(member(artifact, "uri")));
  std::string base = text(member(artifact, "uriBaseId"));
  std::set<std::string> seen;
  while (!path.empty() && path.front() != '/' && !base.empty() && seen.insert(base).second) {
    const Json &entry = member(bases, base.c_str());
    path.insert(0, pathOf(text(member(entry, "uri"))));
    base = text(member(entry, "uriBaseId"));
  }
  return fs::path(path).lexically_normal();
}

std::optional<Region> regionOf(const Json &location, const Json &bases) {
  const Json &physical = member(location, "physicalLocation");
  const Json &region = member(physical, "region");
  Region place{resolvedPath(member(physical, "artifactLocation"), bases),
               number(member(region, "startLine"), 0), 0};
  place.lastLine = number(member(region, "endLine"), place.firstLine);
  if (place.file.empty() || place.firstLine < 1)
    return std::nullopt;
  return place;
}

std::vector<Region> relatedOf(const Json &result, const Json &bases) {
  std::vector<Region> related;
  auto add = [&](const Json &location) {
    if (std::optional<Region> region = regionOf(location, bases))
      related.push_back(*region);
  };
  for (const Json &location : member(result, "relatedLocations"))
    add(location);
  for (const Json &flow : member(result, "codeFlows"))
    for (const Json &thread : member(flow, "threadFlows"))
      for (const Json &step : member(thread, "locations"))
        add(member(step, "location"));
  return related;
}

std::string ruleOf(const Json &result) {
  std::string id = text(member(result, "ruleId"));
  return id.empty() ? text(member(member(result, "rule"), "id")) : id;
}

Json readLog(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || fs::is_directory(path))
    throw RunError(ExitUsage,
                   fmt::format("cannot read the findings {}: {}; write them with device-tidy first", path,
                               file ? "it is a directory" : std::strerror(errno)));
  Json log;
  try {
    log = Json::parse(file);
  } catch (const Json::exception &error) {
    throw RunError(ExitUsage, fmt::format("{} is not JSON: {}; --findings takes a SARIF 2.1.0 report", path,
                                          error.what()));
  }
  if (text(member(log, "version")) != "2.1.0" || !member(log, "runs").is_array())
    throw RunError(ExitUsage,
                   fmt::format("{} is not a SARIF 2.1.0 report: it has no \"version\": \"2.1.0\" and "
                               "\"runs\"",
                               path));
  return log;
}

const char *statusName(Verdict verdict) {
  switch (verdict) {
  case Verdict::Confirmed:
    return "confirmed";
  case Verdict::Reached:
    return "reached";
  case Verdict::NotJudged:
    return "notJudged";
  case Verdict::OtherProgram:
    return "otherProgram";
  case Verdict::NotReached:
    break;
  }
  return "notReached";
}

} // namespace

FindingsReport::FindingsReport(const std::string &path) : log(readLog(path)) {
  const Json &runs = member(log, "runs");
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const Json &bases = member(runs[run], "originalUriBaseIds");
    const Json &results = member(runs[run], "results");
    for (std::size_t result = 0; results.is_array() && result < results.size(); ++result) {
      const Json &locations = member(results[result], "locations");
      if (!locations.is_array() || locations.empty())
        continue;
      std::optional<Region> place = regionOf(locations[0], bases);
      if (!place)
        continue;
      Finding finding;
      finding.rule = ruleOf(results[result]);
      finding.message = text(member(member(results[result], "message"), "text"));
      finding.place = *place;
      finding.related = relatedOf(results[result], bases);
      finding.run = run;
      finding.result = result;
      list.push_back(std::move(finding));
    }
  }
}

void FindingsReport::write(const std::string &path) {
  for (const Finding &finding : list) {
    Json &result = log["runs"][finding.run]["results"][finding.result];
    Json said = {{"status", statusName(finding.verdict)}};
    if (finding.verdict == Verdict::Confirmed) {
      said["error"] = finding.evidence;
      said["rank"] = finding.rank;
    }
    if (!finding.note.empty())
      said["note"] = finding.note;
    result["properties"]["deviceRun"] = std::move(said);
  }
  AtomicFile file(path);
  file.stream() << log.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  file.commit();
}

} // namespace devicerun
