#include "analyzer/lsp/Settings.h"

#include "analyzer/config/Configuration.h"
#include "analyzer/config/Suggest.h"

#include "llvm/ADT/StringRef.h"

namespace devicetidy::lsp {
namespace {

using driver::Options;

/// A setting that is an option of the command line too.
struct OptionSetting {
  llvm::StringRef name, option;
};
constexpr OptionSetting OptionSettings[] = {{"checks", "--checks"},
                                            {"level", "--level"},
                                            {"warningsAsErrors", "--warnings-as-errors"},
                                            {"headerFilter", "--header-filter"},
                                            {"compilationDatabasePath", "-p"}};

/// Sets the option as the command line would; a sentence when the value is wrong.
std::string setOption(const OptionSetting &setting, llvm::StringRef value, Options &options) {
  Options changed = options;
  std::string error;
  if (!driver::parseOptions({setting.option.str(), value.str()}, changed, error))
    return error;
  if (!config::Configuration(changed.config).open(error))
    return error;
  options = std::move(changed);
  return {};
}

std::string apply(llvm::StringRef name, const llvm::json::Value &value, Settings &settings) {
  if (name == "inlayHints") {
    const std::optional<bool> on = value.getAsBoolean();
    settings.inlayHints = on.value_or(settings.inlayHints);
    return on ? "" : "it is true or false";
  }
  std::vector<std::string> known = {"inlayHints"};
  for (const OptionSetting &setting : OptionSettings) {
    known.push_back(setting.name.str());
    if (setting.name != name)
      continue;
    const std::optional<llvm::StringRef> text = value.getAsString();
    return text ? setOption(setting, *text, settings.options) : "it is a string";
  }
  return "there is no such setting" + config::suggestion(name, known);
}

} // namespace

std::vector<std::string> applySettings(const llvm::json::Value &json, Settings &settings) {
  std::vector<std::string> problems;
  const llvm::json::Object *object = json.getAsObject();
  if (!object)
    return problems;
  for (const auto &[name, value] : *object)
    if (std::string problem = apply(name, value, settings); !problem.empty())
      problems.push_back("device-tidy setting '" + llvm::StringRef(name).str() + "': " + problem);
  return problems;
}

} // namespace devicetidy::lsp
