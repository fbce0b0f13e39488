#include "analyzer/driver/commands/ConfigCommands.h"

#include "analyzer/config/DumpConfig.h"
#include "analyzer/config/Suggest.h"
#include "analyzer/driver/options/ModelFiles.h"
#include "analyzer/driver/support/Output.h"
#include "analyzer/driver/support/Paths.h"
#include "analyzer/models/Models.h"
#include "analyzer/models/bodies/Bodies.h"
#include "analyzer/report/diagnostic/NoLint.h"
#include "checks/CheckRegistry.h"

#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

namespace devicetidy::driver {
namespace {

/// The files whose configuration is meant; without FILES some file in the current folder.
std::vector<std::string> configuredFiles(const Options &options) {
  std::vector<std::string> files;
  for (const std::string &file : options.files)
    files.push_back(absolutePath(file));
  if (files.empty())
    files.push_back(absolutePath("file.cpp"));
  return files;
}

ExitCode refuse(const std::string &error) {
  complain(error);
  return ExitCode::Usage;
}

/// Runs `tell` with the settings of the first file.
template <typename Tell> ExitCode withSettings(const Options &options, Tell tell) {
  config::Configuration configuration(options.config);
  std::string error;
  if (!configuration.open(error))
    return refuse(error);
  const config::SettingsPointer settings = configuration.settingsFor(configuredFiles(options).front(), error);
  if (!settings)
    return refuse(error);
  tell(*settings);
  return ExitCode::Clean;
}

ExitCode verifyConfig(const Options &options) {
  config::Configuration configuration(options.config);
  std::string error;
  if (!configuration.open(error))
    return refuse(error);
  std::set<std::string> errors;
  for (const std::string &file : configuredFiles(options)) {
    if (const config::SettingsPointer settings = configuration.settingsFor(file, error))
      readModelFiles(settings->values().models, error);
    if (!error.empty())
      errors.insert(error);
    error.clear();
  }
  for (const std::string &each : errors)
    complain(each);
  if (!errors.empty())
    return ExitCode::Usage;
  llvm::outs() << "No config errors detected.\n";
  return ExitCode::Clean;
}

constexpr llvm::StringRef noLintPage =
    "# device-tidy-nolint\n\n"
    "This is not a check that can be turned on or off. It reports problems with NOLINT comments:\n\n"
    "- a NOLINTBEGIN without a NOLINTEND, or the reverse, is reported in a file with findings;\n"
    "- a comment that suppresses nothing is reported with --report-unused-suppressions.\n\n"
    "Remove the comment, or correct the name of the check in it.\n";

ExitCode explain(const std::string &check) {
  if (check == noLintCheck) {
    llvm::outs() << noLintPage;
    return ExitCode::Clean;
  }
  if (const CheckInfo *info = findCheckInfo(check)) {
    llvm::outs() << llvm::StringRef(info->page);
    return ExitCode::Clean;
  }
  std::vector<std::string> names;
  for (const CheckInfo &info : checkInfos())
    names.emplace_back(info.name);
  return refuse("unknown check '" + check + "'" + config::suggestion(check, names));
}

void listChecks(const config::Settings &settings) {
  for (const CheckInfo &info : checkInfos())
    if (settings.isEnabled(std::string(info.name)))
      llvm::outs() << fmt::format("{:<28}{}\n", info.name, info.summary);
}

void printModels() {
  std::set<std::pair<std::string_view, std::string>> names = models::tableNames();
  for (const std::string &name : models::namesWithBodies())
    names.emplace("body", name);
  for (const auto &[what, name] : names)
    llvm::outs() << fmt::format("{:<11}{}\n", what, name);
}

ExitCode listModels(const Options &options) {
  std::string error;
  const ExitCode status = withSettings(options, [&](const config::Settings &settings) {
    const ModelsPointer users = readModelFiles(settings.values().models, error);
    const models::UsingModels theirs(users.get());
    if (error.empty())
      printModels();
  });
  return error.empty() ? status : refuse(error);
}

} // namespace

std::optional<ExitCode> runInformation(const Options &options) {
  if (options.listChecks)
    return withSettings(options, listChecks);
  if (options.listModels)
    return listModels(options);
  if (!options.explain.empty())
    return explain(options.explain);
  if (options.verifyConfig)
    return verifyConfig(options);
  if (options.dumpConfig)
    return withSettings(
        options, [](const config::Settings &settings) { llvm::outs() << config::dumpConfig(settings); });
  if (options.explainConfig)
    return withSettings(
        options, [](const config::Settings &settings) { llvm::outs() << config::explainConfig(settings); });
  return std::nullopt;
}

} // namespace devicetidy::driver
