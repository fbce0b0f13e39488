//===- Settings.h - what the editor's user has chosen -----------*- C++ -*-===//
#pragma once

#include "analyzer/driver/Options.h"

#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace devicetidy::lsp {

struct Settings {
  driver::Options options; ///< the command line, with what the editor sets
  bool inlayHints = false;

  // What the client can show.
  bool relatedInformation = false, markdownHover = false, inlayRefresh = false;
};

/// Takes over the members of `json`, the editor's settings for device-tidy: "checks", "level",
/// "warningsAsErrors", "headerFilter", "compilationDatabasePath" and "inlayHints". A sentence for each that
/// makes no sense; it then keeps its value.
std::vector<std::string> applySettings(const llvm::json::Value &json, Settings &settings);

} // namespace devicetidy::lsp
