#include "analyzer/report/formats/Baseline.h"

#include "analyzer/report/source/Text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace devicetidy {
namespace {

using Json = nlohmann::ordered_json;

/// The member called `key` when it is a string, else nothing.
std::string textOf(const Json &object, const char *key) {
  if (!object.is_object())
    return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const Json &member(const Json &object, const char *key) {
  static const Json nothing;
  if (!object.is_object())
    return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

const Json &first(const Json &list) {
  static const Json nothing;
  return list.is_array() && !list.empty() ? list.front() : nothing;
}

/// "a%20b" -> "a b".
std::string decodedUri(std::string_view uri) {
  constexpr std::string_view scheme = "file://";
  if (uri.substr(0, scheme.size()) == scheme)
    uri.remove_prefix(scheme.size());
  std::string text;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    unsigned char code = 0;
    const char *digits = uri.data() + i + 1;
    if (uri[i] == '%' && i + 2 < uri.size() &&
        std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
      text += static_cast<char>(code);
      i += 2;
    } else {
      text += uri[i];
    }
  }
  return text;
}

/// A message of SARIF without the backslashes that keep it from being a link.
std::string plainMessage(const std::string &text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size())
      ++i;
    plain += text[i];
  }
  return plain;
}

/// The level a finding has, as reports write it. SARIF has it among the properties.
Level levelOf(const Json &finding) {
  const std::string direct = textOf(finding, "level");
  const std::string inSarif = textOf(member(finding, "properties"), "certainty");
  for (const Level level : {Level::Likely, Level::Latent})
    if (direct == certainty(level) || inSarif == certainty(level))
      return level;
  return Level::Definite;
}

/// A fingerprint without the number that tells equal ones apart: which of them is gone makes no difference.
std::string withoutNumber(const std::string &fingerprint) {
  return fingerprint.substr(0, fingerprint.find(':'));
}

} // namespace

bool Baseline::read(std::string_view text, std::string &error) {
  const Json report = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto add = [this](const Json &fields, Entry entry) {
    if (entry.fingerprint.empty())
      return false;
    entries.push_back(std::move(entry));
    return fields.is_object();
  };
  bool isFine = member(report, "findings").is_array() || member(report, "runs").is_array();
  for (const Json &finding : member(report, "findings"))
    if (!member(finding, "suppressed").is_boolean() || !finding["suppressed"].get<bool>())
      isFine &= add(finding, {textOf(finding, "check"), textOf(finding, "file"), textOf(finding, "function"),
                              textOf(finding, "message"), textOf(finding, "fingerprint"),
                              textOf(member(finding, "cause"), "file"), levelOf(finding)});
  for (const Json &run : member(report, "runs"))
    for (const Json &result : member(run, "results")) {
      if (!first(member(result, "suppressions")).is_null() || textOf(result, "baselineState") == "absent")
        continue;
      const Json &place = first(member(result, "locations"));
      isFine &= add(result,
                    {textOf(result, "ruleId"),
                     decodedUri(textOf(member(member(place, "physicalLocation"), "artifactLocation"), "uri")),
                     textOf(first(member(place, "logicalLocations")), "fullyQualifiedName"),
                     plainMessage(textOf(member(result, "message"), "text")),
                     textOf(member(result, "partialFingerprints"), "deviceTidy/v1"),
                     textOf(member(result, "properties"), "cause"), levelOf(result)});
    }
  if (!isFine)
    error = report.is_discarded() ? "is not valid JSON"
                                  : "is neither a baseline nor a json or sarif report of device-tidy";
  return isFine;
}

Baseline::Entry Baseline::entryOf(const Diagnostic &diagnostic, const ReportRun &run) {
  return {diagnostic.check,
          relativePath(diagnostic.where.file.str(), run.sourceRoot),
          printable(diagnostic.function),
          printable(diagnostic.message),
          diagnostic.fingerprint,
          diagnostic.cause.valid() ? relativePath(diagnostic.cause.file.str(), run.sourceRoot)
                                   : std::string(),
          diagnostic.level};
}

/// Finds the entries of a baseline that match diagnostics; each of them once.
class Baseline::Matching {
public:
  explicit Matching(std::vector<Entry> &entries) {
    for (Entry &entry : entries) {
      entry.isMatched = false;
      byFingerprint.emplace(withoutNumber(entry.fingerprint), &entry);
    }
  }

  /// Those that say the same of the same line are taken.
  void matchFingerprint(Diagnostic &diagnostic) {
    const auto found = byFingerprint.find(withoutNumber(diagnostic.fingerprint));
    if (found == byFingerprint.end())
      return;
    match(diagnostic, *found->second);
    byFingerprint.erase(found);
  }

  /// Then those that say it of any cause.
  void matchFormer(Diagnostic &diagnostic) {
    const auto [begin, end] = byFingerprint.equal_range(diagnostic.formerFingerprint);
    for (auto entry = begin; entry != end; ++entry)
      match(diagnostic, *entry->second);
  }

  /// Of what is left those that say the same in the same file, or in a function of the same name.
  void matchMessage(Diagnostic &diagnostic, const ReportRun &run) {
    if (byMessage.empty())
      for (const auto &[fingerprint, entry] : byFingerprint)
        byMessage.emplace(std::pair(entry->check, entry->message), entry);
    const Entry now = entryOf(diagnostic, run);
    const auto [begin, end] = byMessage.equal_range({now.check, now.message});
    const auto found = std::find_if(begin, end, [&](const auto &candidate) {
      const Entry &entry = *candidate.second;
      return !entry.isMatched && entry.cause == now.cause &&
             (entry.file == now.file || (!now.function.empty() && entry.function == now.function));
    });
    if (found != end)
      match(diagnostic, *found->second);
  }

private:
  static void match(Diagnostic &diagnostic, Entry &entry) {
    entry.isMatched = true;
    diagnostic.baseline = BaselineState::Unchanged;
  }

  std::multimap<std::string, Entry *> byFingerprint;
  std::multimap<std::pair<std::string, std::string>, Entry *> byMessage;
};

BaselineSummary Baseline::compare(std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                                  const LooksAt &looksAt) {
  Matching matching(entries);
  // Of equal lines one may be suppressed now: what is still reported has the first claim to an entry.
  std::vector<Diagnostic *> inOrder;
  for (const bool suppressed : {false, true})
    for (Diagnostic &diagnostic : diagnostics)
      if (diagnostic.isSuppressed == suppressed) {
        diagnostic.baseline = BaselineState::New;
        inOrder.push_back(&diagnostic);
      }
  for (Diagnostic *diagnostic : inOrder)
    matching.matchFingerprint(*diagnostic);
  for (Diagnostic *diagnostic : inOrder)
    if (diagnostic->baseline == BaselineState::New)
      matching.matchFormer(*diagnostic);
  for (Diagnostic *diagnostic : inOrder)
    if (diagnostic->baseline == BaselineState::New)
      matching.matchMessage(*diagnostic, run);
  BaselineSummary summary;
  for (const Diagnostic &diagnostic : diagnostics) {
    const bool isNew = diagnostic.baseline == BaselineState::New;
    if (!diagnostic.isSuppressed)
      ++(isNew ? summary.added : summary.unchanged);
    else if (!isNew)
      ++summary.suppressed;
  }
  for (const Entry &entry : entries)
    if (!entry.isMatched)
      ++(looksAt(entry) ? summary.fixed : summary.notLookedAt);
  return summary;
}

std::string Baseline::updated(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                              const LooksAt &looksAt) const {
  std::map<std::string, std::vector<Entry>> byFile;
  for (const Diagnostic &diagnostic : diagnostics)
    if (!diagnostic.isSuppressed) {
      Entry entry = entryOf(diagnostic, run);
      byFile[entry.file].push_back(std::move(entry));
    }
  for (const Entry &entry : entries)
    if (!entry.isMatched && !looksAt(entry))
      byFile[entry.file].push_back(entry);
  Json findings = Json::array();
  for (const auto &[file, written] : byFile)
    for (const Entry &entry : written) {
      findings.push_back({{"check", entry.check},
                          {"file", file},
                          {"function", entry.function},
                          {"message", entry.message},
                          {"level", certainty(entry.level)},
                          {"fingerprint", entry.fingerprint}});
      if (!entry.cause.empty())
        findings.back()["cause"] = {{"file", entry.cause}};
    }
  const Json baseline = {
      {"version", 1}, {"tool", {{"name", "device-tidy"}}}, {"findings", std::move(findings)}};
  return baseline.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace devicetidy
