//===- Pyproject.h - the table of a pyproject.toml --------------*- C++ -*-===//
//
// `[tool.device-tidy]` has the keys of a .device-tidy file. It is written down as YAML and read like one, so
// both take the same values and say the same about wrong ones.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/config/ConfigFile.h"

#include <optional>
#include <string>
#include <vector>

namespace devicetidy::config {

/// A configuration as YAML, and where each of its lines was written.
struct TranslatedConfig {
  std::string yaml;
  std::vector<ConfigPlace> places;
};

/// The table of the file `name` with the text `toml`; nothing when it has none. With
/// "name:line:column: error: ..." in `error` when it is not TOML.
std::optional<TranslatedConfig> tableOf(llvm::StringRef toml, const std::string &name, std::string &error);

} // namespace devicetidy::config
