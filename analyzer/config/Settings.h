//===- Settings.h - the settings of one source file -------------*- C++ -*-===//
//
// The values of all configuration keys for one file, each with the file or option that it comes from.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/config/Values.h"

#include "llvm/Support/Regex.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::config {

/// A value, and where it comes from: "/src/.device-tidy:3", "command-line option '--level'" or "default".
struct Sourced {
  std::string text, origin;
};

/// The values of all keys, as written.
struct Values {
  std::vector<Sourced> checks, warningsAsErrors; ///< lists of globs; together they are one list
  Sourced level, headerFilter, excludeHeaderFilter;
  Sourced torchVersion;        ///< empty: the one the code includes
  std::vector<Sourced> models; ///< files, absolute
  std::vector<Sourced> extraArguments, extraArgumentsBefore, removedArguments;
  std::map<std::string, Sourced> checkOptions; ///< those that are set
};

/// The values, parsed.
class Settings {
public:
  /// All of `values` are valid.
  explicit Settings(Values values);

  const Values &values() const { return written; }
  const std::set<std::string> &checks() const { return enabled; }
  bool isEnabled(const std::string &check) const { return enabled.count(check) != 0; }
  bool makesErrors(const std::string &check) const { return errors.count(check) != 0; }
  /// The lowest level that is shown of `check`.
  Level levelOf(const std::string &check) const;
  /// The lowest level that is shown of any enabled check.
  Level leastSure() const;
  /// Do the header filters show findings in `file`?
  bool showsHeader(llvm::StringRef file) const;
  TorchVersion torchVersion() const { return version; }
  /// The value of an option of a check, its default when nothing sets it.
  std::string option(llvm::StringRef check, llvm::StringRef name) const;
  /// Where it is decided whether `check` is enabled: the list with the last glob that matches it, else the
  /// first list.
  std::string originOf(const std::string &check) const;

private:
  Values written;
  std::set<std::string> enabled, errors;
  std::map<std::string, Level> levels;
  TorchVersion version;
  llvm::Regex headers, excludedHeaders;
};

using SettingsPointer = std::shared_ptr<const Settings>;

} // namespace devicetidy::config
