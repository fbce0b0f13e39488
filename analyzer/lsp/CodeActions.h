//===- CodeActions.h - fixes as code actions --------------------*- C++ -*-===//
//
// Answers textDocument/codeAction with the fixes and NOLINT comments of findings.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/lsp/FileReport.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace devicetidy::lsp {

/// What a client requests.
struct CodeActionRequest {
  llvm::lsp::Range range;
  std::vector<std::string> only; ///< kinds; empty: all
  bool withVersions = false;     ///< the client takes edits that say which version of a document they are for
};

/// What an editor runs when a file is saved, if its user wants that.
inline constexpr llvm::StringLiteral fixAllKind = "source.fixAll.device-tidy";

/// The repairs of the findings that the range touches and the comments that suppress them, and all repairs of
/// the file at once.
llvm::json::Value codeActionsIn(const FileReport &report, const CodeActionRequest &request);

} // namespace devicetidy::lsp
