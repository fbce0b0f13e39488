//===- Configuration.h - what the user wants, file by file ------*- C++ -*-===//
//
// The nearest .device-tidy, or pyproject.toml with a table for us, above a source file configures it; with
// InheritParentConfig it adds to the next one above. The command line overrides all files.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/config/ConfigFile.h"
#include "analyzer/config/Settings.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace devicetidy::config {

/// The first that is there and says something holds for its folder.
inline constexpr llvm::StringRef configFileNames[] = {".device-tidy", "pyproject.toml"};

/// The configuration on the command line. Values that are not given have no effect.
struct CommandLine {
  std::optional<std::string> checks, warningsAsErrors, level, headerFilter, excludeHeaderFilter, torchVersion;
  std::vector<std::string> models; ///< files
  std::vector<std::string> extraArguments, extraArgumentsBefore, removedArguments;
  std::optional<std::string> config;     ///< --config: the text of a configuration
  std::optional<std::string> configFile; ///< --config-file
};

class Configuration {
public:
  explicit Configuration(CommandLine commandLine) : commandLine(std::move(commandLine)) {}

  /// Reads --config or --config-file and checks the values of the command line. False, with a
  /// sentence in `error`, when something is wrong.
  bool open(std::string &error);

  /// The settings of `file`, which is absolute and need not exist. Null, with "name:line:column: error: ..."
  /// in `error`, when a configuration file is wrong.
  SettingsPointer settingsFor(const std::string &file, std::string &error);

  /// The configuration files that apply to `file`, the nearest first. Otherwise like settingsFor().
  bool filesFor(const std::string &file, std::vector<const ConfigFile *> &files, std::string &error);

private:
  /// The configuration file in `directory`; null when there is none. Each is read once.
  bool fileIn(llvm::StringRef directory, const ConfigFile *&file, std::string &error);
  bool checkCommandLine(std::string &error) const;

  CommandLine commandLine;
  std::optional<ConfigFile> fixed; ///< the configuration of --config or --config-file; no other file is read
  std::map<std::string, std::unique_ptr<ConfigFile>> byDirectory;
  /// By the sections that apply, of all files: most source files share one.
  std::map<std::vector<const ConfigSection *>, SettingsPointer> known;
};

} // namespace devicetidy::config
