#include "analyzer/config/ConfigFile.h"

#include "analyzer/config/CheckGlobs.h"
#include "analyzer/config/Suggest.h"
#include "analyzer/config/Values.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/YAMLTraits.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace devicetidy::config {
namespace {

using llvm::StringRef;

/// How a scalar is checked.
enum class Kind { Any, Globs, Regex, Level, Version, OptionName, OptionValue };

/// Goes with the input as its context.
struct Reading {
  StringRef text;
  const std::vector<ConfigPlace> &places; ///< of the lines of a translation
  const llvm::yaml::Input *input = nullptr;
  std::string option;  ///< whose value comes next
  std::string problem; ///< what a value is refused with; LLVM keeps no copy until it reports
};

template <Kind K> struct Scalar : ConfigText {};
template <Kind K> struct ScalarOrList {
  std::vector<Scalar<K>> items;
};
struct OptionPair {
  Scalar<Kind::OptionName> key;
  Scalar<Kind::OptionValue> value;
};
struct OptionList {
  std::vector<OptionPair> pairs;
};
struct Condition {
  ScalarOrList<Kind::Regex> match, exclude;
};

std::string wrongValue(Kind kind, StringRef text, Reading &reading) {
  std::string error;
  std::set<std::string> selected;
  switch (kind) {
  case Kind::Any:
    break;
  case Kind::Globs:
    selectChecks(text.str(), selected, error);
    break;
  case Kind::Regex:
    return wrongRegex(text);
  case Kind::Level:
    parseLevel(text, error);
    break;
  case Kind::Version:
    parseTorchVersion(text, error);
    break;
  case Kind::OptionName:
    reading.option = text.str();
    findCheckOption(text, error);
    break;
  case Kind::OptionValue:
    if (const auto found = findCheckOption(reading.option, error))
      if (error = wrongOptionValue(*found->option, text); !error.empty())
        error = reading.option + ": " + error;
  }
  return error;
}

/// The line of the current scalar; its text may be a copy without the escapes, which has no place in the
/// file.
unsigned lineOf(const Reading &reading) {
  const llvm::yaml::Node *node = reading.input ? reading.input->getCurrentNode() : nullptr;
  const char *place = node ? node->getSourceRange().Start.getPointer() : nullptr;
  if (!place || place < reading.text.begin() || place > reading.text.end())
    return 0;
  const auto above = static_cast<std::size_t>(std::count(reading.text.begin(), place, '\n'));
  return above < reading.places.size() ? reading.places[above].line : static_cast<unsigned>(above + 1);
}

template <Kind K> std::vector<ConfigText> textsOf(const ScalarOrList<K> &list) {
  return {list.items.begin(), list.items.end()};
}

} // namespace
} // namespace devicetidy::config

namespace llvm::yaml {

namespace dt = devicetidy::config;

template <dt::Kind K> struct ScalarTraits<dt::Scalar<K>> {
  static void output(const dt::Scalar<K> &value, void *, raw_ostream &out) { out << value.text; }
  static StringRef input(StringRef text, void *context, dt::Scalar<K> &value) {
    auto &reading = *static_cast<dt::Reading *>(context);
    value.text = text.str();
    value.line = dt::lineOf(reading);
    reading.problem = dt::wrongValue(K, text, reading);
    return reading.problem;
  }
  static QuotingType mustQuote(StringRef text) { return needsQuotes(text); }
};

template <dt::Kind K> struct SequenceElementTraits<dt::Scalar<K>> {
  static const bool flow = false;
};
template <> struct SequenceElementTraits<dt::OptionPair> {
  static const bool flow = false;
};

template <> struct MappingTraits<dt::OptionPair> {
  static void mapping(IO &io, dt::OptionPair &pair) {
    io.mapRequired("key", pair.key);
    io.mapRequired("value", pair.value);
  }
};

template <dt::Kind K> void readScalarOrList(IO &io, dt::ScalarOrList<K> &list, EmptyContext &context) {
  if (isa<SequenceNode>(static_cast<Input &>(io).getCurrentNode()))
    return yamlize(io, list.items, true, context);
  yamlize(io, list.items.emplace_back(), true, context);
}
template <> void yamlize(IO &io, dt::ScalarOrList<dt::Kind::Any> &list, bool, EmptyContext &context) {
  readScalarOrList(io, list, context);
}
template <> void yamlize(IO &io, dt::ScalarOrList<dt::Kind::Globs> &list, bool, EmptyContext &context) {
  readScalarOrList(io, list, context);
}
template <> void yamlize(IO &io, dt::ScalarOrList<dt::Kind::Regex> &list, bool, EmptyContext &context) {
  readScalarOrList(io, list, context);
}

/// A mapping, or the list of mappings from `key` and `value` that clang-tidy wrote in earlier times.
template <> void yamlize(IO &io, dt::OptionList &options, bool, EmptyContext &context) {
  const Node *node = static_cast<Input &>(io).getCurrentNode();
  if (isa<SequenceNode>(node))
    return yamlize(io, options.pairs, true, context);
  if (!isa<MappingNode>(node))
    return io.setError("expected check options and their values, such as 'device-mixed-op.Level: latent'");
  io.beginMapping();
  for (const StringRef name : io.keys()) {
    dt::OptionPair &pair = options.pairs.emplace_back();
    pair.key.text = name.str();
    static_cast<dt::Reading *>(io.getContext())->option = pair.key.text;
    io.mapRequired(pair.key.text.c_str(), pair.value);
  }
  io.endMapping();
}

template <> struct MappingTraits<dt::Condition> {
  static void mapping(IO &io, dt::Condition &condition) {
    io.mapOptional("PathMatch", condition.match);
    io.mapOptional("PathExclude", condition.exclude);
  }
};

template <> struct MappingTraits<dt::ConfigSection> {
  template <dt::Kind K> static void scalar(IO &io, const char *key, std::optional<dt::ConfigText> &result) {
    std::optional<dt::Scalar<K>> value;
    io.mapOptional(key, value);
    if (value)
      result = *value;
  }
  template <dt::Kind K> static void list(IO &io, const char *key, std::vector<dt::ConfigText> &result) {
    dt::ScalarOrList<K> value;
    io.mapOptional(key, value);
    result = dt::textsOf(value);
  }
  static void mapping(IO &io, dt::ConfigSection &section) {
    dt::Condition condition;
    io.mapOptional("If", condition);
    section.pathMatch = dt::textsOf(condition.match);
    section.pathExclude = dt::textsOf(condition.exclude);
    list<dt::Kind::Globs>(io, "Checks", section.checks);
    list<dt::Kind::Globs>(io, "WarningsAsErrors", section.warningsAsErrors);
    scalar<dt::Kind::Level>(io, "Level", section.level);
    scalar<dt::Kind::Regex>(io, "HeaderFilterRegex", section.headerFilter);
    scalar<dt::Kind::Regex>(io, "ExcludeHeaderFilterRegex", section.excludeHeaderFilter);
    list<dt::Kind::Any>(io, "ExtraArgs", section.extraArguments);
    list<dt::Kind::Any>(io, "ExtraArgsBefore", section.extraArgumentsBefore);
    list<dt::Kind::Any>(io, "RemovedArgs", section.removedArguments);
    scalar<dt::Kind::Version>(io, "TorchVersion", section.torchVersion);
    list<dt::Kind::Any>(io, "Models", section.models);
    io.mapOptional("InheritParentConfig", section.inheritParentConfig);
    dt::OptionList options;
    io.mapOptional("CheckOptions", options);
    for (const dt::OptionPair &pair : options.pairs)
      section.checkOptions.push_back({pair.key.text, pair.value});
  }
};

template <> struct DocumentListTraits<std::vector<dt::ConfigSection>> {
  static std::size_t size(IO &, std::vector<dt::ConfigSection> &sections) { return sections.size(); }
  static dt::ConfigSection &element(IO &, std::vector<dt::ConfigSection> &sections, std::size_t index) {
    if (index >= sections.size())
      sections.resize(index + 1);
    return sections[index];
  }
};

} // namespace llvm::yaml

namespace devicetidy::config {
namespace {

/// The first error, as compilers write it.
struct FirstError {
  const std::string &name;
  std::string &text;
  const std::vector<ConfigPlace> &places;
};

/// What to write instead of a key that nothing reads.
std::string keyHint(StringRef key) {
  static const std::vector<std::string> known = configKeys();
  // Keys of .clang-tidy whose part of the work is done elsewhere here, or not at all.
  static constexpr StringRef foreign[] = {
      "CustomChecks", "FormatStyle", "HeaderFileExtensions", "ImplementationFileExtensions", "SystemHeaders",
      "UseColor",     "User"};
  if (llvm::is_contained(foreign, key))
    return "; only clang-tidy has it";
  const std::string hint = suggestion(key, known);
  return hint.empty() ? "; the keys are " + llvm::join(known, ", ") : hint;
}

void keepFirstError(const llvm::SMDiagnostic &diagnostic, void *context) {
  auto &first = *static_cast<FirstError *>(context);
  if (!first.text.empty())
    return;
  std::string message = diagnostic.getMessage().str();
  if (message == "unexpected scalar")
    message = "expected a string here";
  StringRef key = message;
  if (key.consume_front("unknown key '") && key.consume_back("'"))
    message += keyHint(key.str());
  ConfigPlace place{static_cast<unsigned>(std::max(diagnostic.getLineNo(), 1)),
                    static_cast<unsigned>(diagnostic.getColumnNo() + 1)};
  if (place.line <= first.places.size())
    place = first.places[place.line - 1];
  first.text = fmt::format("{}:{}:{}: error: {}", first.name, place.line, place.column, message);
}

bool matchesWhole(const ConfigText &pattern, StringRef path) {
  return llvm::Regex("^(" + pattern.text + ")$").match(path);
}

} // namespace

bool ConfigSection::holdsFor(StringRef path) const {
  const auto matches = [path](const ConfigText &pattern) { return matchesWhole(pattern, path); };
  return (pathMatch.empty() || llvm::any_of(pathMatch, matches)) && llvm::none_of(pathExclude, matches);
}

bool parseConfig(StringRef text, ConfigFile &file, std::string &error,
                 const std::vector<ConfigPlace> &places) {
  Reading reading{text, places, nullptr, {}, {}};
  FirstError first{file.name, error, places};
  llvm::yaml::Input input(text, &reading, keepFirstError, &first);
  reading.input = &input;
  input >> file.sections;
  if (input.error() && error.empty())
    error = file.name + ":1:1: error: this is not valid YAML";
  return error.empty();
}

std::vector<std::string> configKeys() {
  return {"If",
          "PathMatch",
          "PathExclude",
          "Checks",
          "WarningsAsErrors",
          "Level",
          "HeaderFilterRegex",
          "ExcludeHeaderFilterRegex",
          "ExtraArgs",
          "ExtraArgsBefore",
          "RemovedArgs",
          "TorchVersion",
          "Models",
          "InheritParentConfig",
          "CheckOptions"};
}

} // namespace devicetidy::config
