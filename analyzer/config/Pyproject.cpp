#include "analyzer/config/Pyproject.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace devicetidy::config {
namespace {

using llvm::StringRef;

constexpr StringRef tool = "device-tidy";

/// The array of tables that stands for the further documents of a .device-tidy.
constexpr std::string_view overrides = "overrides";

ConfigPlace placeOf(const toml::source_position &at) { return {at.line, at.column}; }

/// Writes nodes as YAML in flow style, each key and value on a line of its own.
class Translation {
public:
  explicit Translation(StringRef toml) { toml.split(lines, '\n'); }

  /// A document; `table` is the whole table or one of its overrides.
  void addDocument(const toml::table &table) {
    const ConfigPlace place = placeOf(table.source().begin);
    addLine("---", place);
    addTable(table, {overrides});
  }

  TranslatedConfig result;

private:
  struct Entry {
    std::string name;
    ConfigPlace place;
    const toml::node *value;
  };

  void addLine(const std::string &text, ConfigPlace place) {
    result.yaml += text + '\n';
    result.places.push_back(place);
  }

  // toml++ sorts keys by name.
  static void sortByPlace(std::vector<Entry> &entries) {
    llvm::stable_sort(entries, [](const Entry &a, const Entry &b) {
      return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
  }

  // `device-mixed-op.Level = ..` is a table in TOML, and the name of an option here.
  static void addOptions(const toml::table &table, const std::string &prefix, std::vector<Entry> &entries) {
    for (const auto &[key, value] : table) {
      const std::string name = prefix + std::string(key.str());
      if (const toml::table *nested = value.as_table())
        addOptions(*nested, name + ".", entries);
      else
        entries.push_back({name, placeOf(key.source().begin), &value});
    }
  }

  void addTable(const toml::table &table, std::vector<std::string_view> leftOut = {}) {
    std::vector<Entry> entries;
    for (const auto &[key, value] : table)
      if (!llvm::is_contained(leftOut, key.str()))
        entries.push_back({std::string(key.str()), placeOf(key.source().begin), &value});
    addEntries(std::move(entries), placeOf(table.source().begin));
  }

  void addEntries(std::vector<Entry> entries, ConfigPlace place) {
    sortByPlace(entries);
    addLine("{", place);
    for (const Entry &each : entries) {
      addLine(quoted(each.name) + ":", each.place);
      addValue(each);
      addLine(",", each.place);
    }
    addLine("}", place);
  }

  void addValue(const Entry &entry) {
    const ConfigPlace place = placeOf(entry.value->source().begin);
    if (const toml::table *table = entry.value->as_table()) {
      if (entry.name != "CheckOptions")
        return addTable(*table);
      std::vector<Entry> options;
      addOptions(*table, {}, options);
      return addEntries(std::move(options), place);
    }
    if (const toml::array *array = entry.value->as_array()) {
      addLine("[", place);
      for (const toml::node &each : *array) {
        addValue({{}, placeOf(each.source().begin), &each});
        addLine(",", place);
      }
      return addLine("]", place);
    }
    const toml::value<std::string> *text = entry.value->as_string();
    addLine(text ? quoted(text->get()) : written(entry.value->source()), place);
  }

  static std::string quoted(const std::string &text) {
    std::string result;
    llvm::raw_string_ostream(result) << llvm::json::Value(text);
    return result;
  }

  // As the user wrote it: 2.10 is a version.
  std::string written(const toml::source_region &region) const {
    const auto &[begin, end, path] = region;
    if (begin.line != end.line || begin.line == 0 || begin.line > lines.size())
      return "''";
    return lines[begin.line - 1].substr(begin.column - 1, end.column - begin.column).trim().str();
  }

  llvm::SmallVector<StringRef, 0> lines;
};

} // namespace

std::optional<TranslatedConfig> tableOf(StringRef toml, const std::string &name, std::string &error) {
  if (!toml.contains(tool)) // whatever is wrong with it is nothing to us
    return std::nullopt;
  const toml::parse_result parsed = toml::parse(std::string_view(toml), name);
  if (!parsed) {
    const toml::source_position at = parsed.error().source().begin;
    error = fmt::format("{}:{}:{}: error: {}", name, at.line, at.column, parsed.error().description());
    return std::nullopt;
  }
  const auto node = parsed.table()["tool"][std::string_view(tool)];
  if (!node)
    return std::nullopt;
  const toml::table *table = node.as_table();
  if (!table) {
    const toml::source_position at = node.node()->source().begin;
    error = fmt::format("{}:{}:{}: error: expected a table, [tool.device-tidy]", name, at.line, at.column);
    return std::nullopt;
  }
  Translation translation(toml);
  translation.addDocument(*table);
  if (const toml::node *found = table->get(overrides)) {
    const toml::array *further = found->as_array();
    if (!further || !further->is_homogeneous(toml::node_type::table)) {
      const toml::source_position at = found->source().begin;
      error = fmt::format("{}:{}:{}: error: expected tables, [[tool.device-tidy.overrides]]", name, at.line,
                          at.column);
      return std::nullopt;
    }
    for (const toml::node &each : *further)
      translation.addDocument(*each.as_table());
  }
  return std::move(translation.result);
}

} // namespace devicetidy::config
