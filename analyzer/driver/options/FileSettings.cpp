#include "analyzer/driver/options/FileSettings.h"

#include "analyzer/config/DistributedOptions.h"

#include <algorithm>

namespace devicetidy::driver {

bool FileSettings::read(const std::set<Name> &files, std::string &error) {
  for (Name file : files) {
    config::SettingsPointer found = configuration.settingsFor(file.str(), error);
    if (!found)
      return false;
    enabled.insert(found->checks().begin(), found->checks().end());
    leastSure = std::max(leastSure, found->leastSure());
    if (!readModels(*found, error))
      return false;
    settings.emplace(file, std::move(found));
  }
  return true;
}

namespace {

// The files of models that hold for all `settings`, each once.
std::vector<config::Sourced> modelFiles(const std::vector<const config::Settings *> &settings) {
  std::vector<config::Sourced> files;
  for (const config::Settings *each : settings)
    for (const config::Sourced &file : each->values().models)
      if (std::none_of(files.begin(), files.end(),
                       [&](const config::Sourced &known) { return known.text == file.text; }))
        files.push_back(file);
  return files;
}

} // namespace

bool FileSettings::readModels(const config::Settings &found, std::string &error) const {
  return readModelFiles(modelFiles({&found}), error) || error.empty();
}

const config::Settings *FileSettings::of(Name file) const {
  const auto found = settings.find(file);
  return found == settings.end() ? nullptr : found->second.get();
}

bool FileSettings::isWanted(const Finding &finding) const {
  const config::Settings *found = of(finding.where.file);
  return found && found->isEnabled(finding.check) && finding.level <= found->levelOf(finding.check);
}

bool FileSettings::showsHeader(Name file) const {
  const config::Settings *found = of(file);
  return found && found->showsHeader(file.str());
}

bool FileSettings::isError(const Finding &finding) const {
  const config::Settings *found = of(finding.where.file);
  return found && found->makesErrors(finding.check);
}

SolveOptions FileSettings::solveOptions(const std::vector<Unit> &units) const {
  SolveOptions options;
  options.reportLatent = leastSure == Level::Latent;
  std::vector<const config::Settings *> all;
  for (const Unit &unit : units) {
    options.isIncomplete |=
        !unit.skippedFunctions.empty() || unit.opaqueExpressions.count(Name(unparsedCode)) != 0;
    const config::Settings *found = of(unit.mainFile);
    if (!found)
      continue;
    all.push_back(found);
    DistributedNames names = config::distributedNames(
        [found](const char *option) { return found->option("device-map-distributed", option); });
    options.names.loaders.merge(names.loaders);
    options.names.initialisers.merge(names.initialisers);
    options.names.launchers.merge(names.launchers);
    if (options.torchMajor == 0) {
      options.torchMajor = found->torchVersion().major;
      options.torchMinor = found->torchVersion().minor;
    }
  }
  std::string error; // read() has looked at each file
  options.models = readModelFiles(modelFiles(all), error);
  return options;
}

} // namespace devicetidy::driver
