#include "analyzer/lsp/Settings.h"

#include "analyzer/config/Configuration.h"
#include "analyzer/config/Suggest.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace devicetidy::lsp {
namespace {

using driver::Options;

/// A setting that is an option of the command line too.
struct OptionSetting {
  llvm::StringRef name, option;
};
constexpr llvm::StringRef inlayHints = "inlayHints";
constexpr llvm::StringRef databasePath = "compilationDatabasePath";
constexpr OptionSetting OptionSettings[] = {{"checks", "--checks"},
                                            {"level", "--level"},
                                            {"warningsAsErrors", "--warnings-as-errors"},
                                            {"headerFilter", "--header-filter"},
                                            {databasePath, "-p"}};

/// A relative path is one in a folder that is open, as everywhere in editors: in the first that has it.
std::string inFolders(llvm::StringRef path, const std::vector<std::string> &folders) {
  if (path.empty() || folders.empty() || llvm::sys::path::is_absolute(path))
    return path.str();
  for (const std::string &folder : folders)
    if (llvm::sys::fs::exists(folder + "/" + path))
      return (folder + "/" + path).str();
  return (folders.front() + "/" + path).str();
}

/// Sets the option as the command line would, or as it was there; a sentence when the value is wrong.
std::string setOption(const OptionSetting &setting, std::optional<llvm::StringRef> value,
                      Settings &settings) {
  std::map<std::string, std::string> chosen = settings.chosen;
  if (value)
    chosen[setting.name.str()] =
        setting.name == databasePath ? inFolders(*value, settings.folders) : value->str();
  else
    chosen.erase(setting.name.str());
  Options changed = settings.commandLine;
  std::string error;
  for (const OptionSetting &each : OptionSettings)
    if (const auto found = chosen.find(each.name.str());
        found != chosen.end() && !driver::parseOptions({each.option.str(), found->second}, changed, error))
      return error;
  if (!config::Configuration(changed.config).open(error))
    return error;
  settings.chosen = std::move(chosen);
  settings.options = std::move(changed);
  return {};
}

/// Nothing when no setting is called `name`.
std::optional<std::string> apply(llvm::StringRef name, const llvm::json::Value &value, Settings &settings) {
  const bool isReset = value.kind() == llvm::json::Value::Null;
  if (name == inlayHints) {
    const std::optional<bool> on = isReset ? std::optional(false) : value.getAsBoolean();
    settings.inlayHints = on.value_or(settings.inlayHints);
    return on ? "" : "expected true or false";
  }
  for (const OptionSetting &setting : OptionSettings) {
    if (setting.name != name)
      continue;
    const std::optional<llvm::StringRef> text = value.getAsString();
    return text || isReset ? setOption(setting, text, settings) : "expected a string";
  }
  return std::nullopt;
}

std::string unknown(llvm::StringRef name) {
  std::vector<std::string> known = {inlayHints.str()};
  for (const OptionSetting &setting : OptionSettings)
    known.push_back(setting.name.str());
  return "unknown setting" + config::suggestion(name, known);
}

} // namespace

std::vector<std::string> applySettings(const llvm::json::Value &json, bool isSection, Settings &settings) {
  std::vector<std::string> problems;
  const llvm::json::Object *object = json.getAsObject();
  if (!object)
    return problems;
  for (const auto &[name, value] : *object) {
    std::optional<std::string> problem = apply(name, value, settings);
    if (!problem)
      problem = isSection ? unknown(name) : std::string();
    if (!problem->empty())
      problems.push_back("device-tidy setting '" + llvm::StringRef(name).str() + "': " + *problem);
  }
  return problems;
}

} // namespace devicetidy::lsp
