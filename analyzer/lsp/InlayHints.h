//===- InlayHints.h - devices behind the names of variables -----*- C++ -*-===//
#pragma once

#include "analyzer/lsp/FileReport.h"

namespace devicetidy::lsp {

/// An InlayHint for each variable of tensors or module that is declared in `range`.
llvm::json::Value inlayHintsIn(const FileReport &report, const llvm::lsp::Range &range);

} // namespace devicetidy::lsp
