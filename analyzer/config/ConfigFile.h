//===- ConfigFile.h - what a .device-tidy file says -------------*- C++ -*-===//
//
// YAML with the keys of .clang-tidy, in one or more documents. A document may begin with an `If` that says
// which files it applies to, as in clangd's configuration. docs/configuration.md is the page for users.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace devicetidy::config {

/// Where something is written, from 1; 0 when it is unknown.
struct ConfigPlace {
  unsigned line = 0, column = 0;
};

/// A scalar of the file, and its place.
struct ConfigText {
  std::string text;
  unsigned line = 0; ///< from 1; 0 when it is unknown
};

/// An entry of CheckOptions: "device-mixed-op.Level" and its value.
struct ConfigOption {
  std::string name;
  ConfigText value;
};

/// One document of the file. Missing keys have no effect; lists are in the order of the file.
struct ConfigSection {
  std::vector<ConfigText> pathMatch, pathExclude; ///< regular expressions for the path below the file
  std::optional<bool> inheritParentConfig;
  std::vector<ConfigText> checks, warningsAsErrors; ///< lists of globs; later ones override earlier ones
  std::optional<ConfigText> level, headerFilter, excludeHeaderFilter, torchVersion;
  std::vector<ConfigText> models; ///< files that say what libraries do, seen from the file's folder
  std::vector<ConfigText> extraArguments, extraArgumentsBefore, removedArguments;
  std::vector<ConfigOption> checkOptions;

  /// Does the section apply to the file `path` below the configuration file?
  bool holdsFor(llvm::StringRef path) const;
};

struct ConfigFile {
  std::string name;      ///< absolute path, or what the user gave the text with
  std::string directory; ///< that paths are seen from; absolute
  std::vector<ConfigSection> sections;
};

/// Reads `text`. False, with "name:line:column: error: ..." in `error`, when it is not valid YAML, has a key
/// that is unknown (the nearest known one is named), or an invalid value.
/// `places`: where the lines of `text` were written, when it is a translation (Pyproject.h).
bool parseConfig(llvm::StringRef text, ConfigFile &file, std::string &error,
                 const std::vector<ConfigPlace> &places = {});

/// The keys of a document, in the order in which --dump-config writes them.
std::vector<std::string> configKeys();

} // namespace devicetidy::config
