//===- CodeActions.h - fixes to choose from ---------------------*- C++ -*-===//
#pragma once

#include "analyzer/lsp/FileReport.h"

#include <string>
#include <vector>

namespace devicetidy::lsp {

/// What a client asks for.
struct CodeActionRequest {
  llvm::lsp::Range range;
  std::vector<std::string> only; ///< kinds; empty: all
  bool withVersions = false;     ///< the client takes edits that say which version of a document they are for
};

/// The quick fixes of the findings that the range touches.
llvm::json::Value codeActionsIn(const FileReport &report, const CodeActionRequest &request);

} // namespace devicetidy::lsp
