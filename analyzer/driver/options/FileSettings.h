//===- FileSettings.h - the configuration of the files of a run -*- C++ -*-===//
//
// The settings of every file in which a finding may be, and the settings of the run that follow from
// them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/config/Configuration.h"
#include "analyzer/driver/options/ModelFiles.h"
#include "analyzer/facts/Program.h"
#include "analyzer/report/finding/Finding.h"
#include "analyzer/solve/solution/SolveOptions.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// The settings of each file that findings may be in, and of the run as a whole.
class FileSettings {
public:
  explicit FileSettings(config::Configuration &configuration) : configuration(configuration) {}

  /// Looks up the settings of `files`. False, with a sentence in `error`, when a configuration file is wrong.
  bool read(const std::set<Name> &files, std::string &error);

  /// Checks that are enabled for some file.
  const std::set<std::string> &checks() const { return enabled; }

  /// Is the finding's check enabled where the finding is, and is its level shown? A file that was not
  /// read has no findings.
  bool isWanted(const Finding &finding) const;
  bool showsHeader(Name file) const;
  bool isError(const Finding &finding) const;
  const config::Settings *of(Name file) const;

  /// The options of the solver for a program of these units.
  SolveOptions solveOptions(const std::vector<Unit> &units) const;
  /// Findings that no file shows are computed, too, because other findings depend on them.
  void findAll() { leastSure = Level::Latent; }

private:
  bool readModels(const config::Settings &found, std::string &error) const;

  config::Configuration &configuration;
  std::map<Name, config::SettingsPointer> settings;
  std::set<std::string> enabled;
  Level leastSure = Level::Definite;
};

} // namespace devicetidy::driver
