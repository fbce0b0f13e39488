//===- InlayHints.h - devices behind the names of variables -----*- C++ -*-===//
//
// Answers textDocument/inlayHint with the devices of the variables that are declared in a range.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/lsp/FileReport.h"

namespace devicetidy::lsp {

/// An InlayHint for each variable of tensors or module that is declared in `range`.
llvm::json::Value inlayHintsIn(const FileReport &report, const llvm::lsp::Range &range);

} // namespace devicetidy::lsp
