#include "analyzer/report/diagnostic/LineFilter.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace devicetidy {
namespace {

using Json = nlohmann::json;

constexpr const char *example = R"([{"name": "file.cpp", "lines": [[1, 3], [5, 7]]}, {"name": "file.h"}])";

bool isLine(const Json &value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= UINT32_MAX;
}

/// The reason why `entry` is not a file with lines, or null.
const char *wrongEntry(const Json &entry) {
  if (!entry.is_object())
    return "an entry is not an object";
  for (const auto &[key, value] : entry.items())
    if (key != "name" && key != "lines")
      return "an entry has the keys 'name' and 'lines' only";
  if (!entry.contains("name") || !entry["name"].is_string() || entry["name"].get<std::string>().empty())
    return "an entry has no 'name'";
  if (!entry.contains("lines"))
    return nullptr;
  if (!entry["lines"].is_array())
    return "'lines' is not a list of ranges";
  for (const Json &range : entry["lines"])
    if (!range.is_array() || range.size() != 2 || !isLine(range[0]) || !isLine(range[1]) ||
        range[0] > range[1])
      return "a range of lines is not a pair of first and last line";
  return nullptr;
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

} // namespace

void LineFilter::addPath(const std::string &path, Range range) { paths[path].push_back(range); }

bool LineFilter::addJson(const std::string &text, std::string &error) {
  const Json filter = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const char *wrong = filter.is_discarded() ? "this is not valid JSON"
                      : filter.is_array()   ? nullptr
                                            : "this is not a list";
  for (std::size_t i = 0; !wrong && i < filter.size(); ++i) {
    wrong = wrongEntry(filter[i]);
    if (wrong)
      break;
    Suffix suffix{filter[i]["name"], {}};
    for (const Json &range : filter[i].value("lines", Json::array()))
      suffix.ranges.emplace_back(range[0], range[1]);
    if (suffix.ranges.empty())
      suffix.ranges.push_back(allLines);
    suffixes.push_back(std::move(suffix));
  }
  if (wrong)
    error = std::string(wrong) + "; it looks like " + example;
  return !wrong;
}

const std::vector<LineFilter::Range> *LineFilter::rangesOf(Name file) {
  const auto [entry, isNew] = known.try_emplace(file, nullptr);
  if (!isNew)
    return entry->second;
  for (const Suffix &suffix : suffixes)
    if (endsWith(file.str(), suffix.name))
      return entry->second = &suffix.ranges;
  std::error_code code;
  const std::filesystem::path real = std::filesystem::canonical(file.str(), code);
  if (const auto found = paths.find(code ? file.str() : real.string()); found != paths.end())
    entry->second = &found->second;
  return entry->second;
}

bool LineFilter::passes(const Location &place) {
  const Location where = inFile ? inFile(place) : place;
  const std::vector<Range> *ranges = where.file ? rangesOf(where.file) : nullptr;
  return ranges && std::any_of(ranges->begin(), ranges->end(), [&](const Range &range) {
           return where.line <= range.second && std::max(where.line, where.endLine) >= range.first;
         });
}

bool LineFilter::passes(const Diagnostic &diagnostic) {
  return passes(diagnostic.where) || std::any_of(diagnostic.notes.begin(), diagnostic.notes.end(),
                                                 [this](const Note &note) { return passes(note.where); });
}

} // namespace devicetidy
