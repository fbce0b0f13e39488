//===- Hover.h - where a variable lives, and why ----------------*- C++ -*-===//
//
// Answers textDocument/hover with the devices of the expression and its history.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/lsp/FileReport.h"

namespace devicetidy::lsp {

/// The Hover for a position, null where nothing is known to live on a device.
llvm::json::Value hoverAt(const FileReport &report, const llvm::lsp::Position &position, bool asMarkdown);

} // namespace devicetidy::lsp
