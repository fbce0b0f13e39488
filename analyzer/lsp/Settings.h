//===- Settings.h - the settings of the editor ------------------*- C++ -*-===//
//
// The options of the server: those of its command line, changed by the settings that the editor sends.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/options/Options.h"

#include "llvm/Support/JSON.h"

#include <map>
#include <string>
#include <vector>

namespace devicetidy::lsp {

struct Settings {
  explicit Settings(const driver::Options &commandLine = {})
      : commandLine(commandLine), options(commandLine) {}

  driver::Options commandLine;
  std::map<std::string, std::string> chosen; ///< options of the command line, by the name of the setting
  driver::Options options;                   ///< the command line, with what is chosen
  bool inlayHints = false;

  std::vector<std::string> folders; ///< open in the editor; none: unknown

  // What the client can show.
  bool relatedInformation = false, markdownHover = false, inlayRefresh = false, versionedEdits = false;
};

/// Takes over the members of `json`, the editor's settings for device-tidy: "checks", "level",
/// "warningsAsErrors", "headerFilter", "compilationDatabasePath" and "inlayHints". Returns a sentence
/// for each invalid one, which keeps its value. Null restores the value of the command line. Without
/// `isSection` there may also be settings of other servers.
std::vector<std::string> applySettings(const llvm::json::Value &json, bool isSection, Settings &settings);

} // namespace devicetidy::lsp
