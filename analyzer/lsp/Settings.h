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

  std::vector<std::string> folders; ///< open in the editor; none: it did not say

  // What the client can show.
  bool relatedInformation = false, markdownHover = false, inlayRefresh = false, versionedEdits = false;
};

/// Takes over the members of `json`, the editor's settings for device-tidy: "checks", "level",
/// "warningsAsErrors", "headerFilter", "compilationDatabasePath" and "inlayHints". A sentence for each that
/// makes no sense; it then keeps its value. Null gives the command line its say again. Not `isSection`: there
/// may be settings of other servers beside them.
std::vector<std::string> applySettings(const llvm::json::Value &json, bool isSection, Settings &settings);

} // namespace devicetidy::lsp
