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
  bool withVersions = false;     ///< the client accepts edits for a version of a document
};

/// The action that an editor can run when a file is saved.
inline constexpr llvm::StringLiteral fixAllKind = "source.fixAll.device-tidy";

/// The fixes of the findings in the range, the comments that suppress them, and all fixes of the file at
/// once.
llvm::json::Value codeActionsIn(const FileReport &report, const CodeActionRequest &request);

} // namespace devicetidy::lsp
