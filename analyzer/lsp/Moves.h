//===- Moves.h - the places of moves ----------------------------*- C++ -*-===//
//
// Answers textDocument/implementation with the lines that decided the device of an expression.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/lsp/FileReport.h"

namespace devicetidy::lsp {

/// Locations that decided the device of the expression at a position: moves, else where it was made.
llvm::json::Value movesAt(const FileReport &report, const llvm::lsp::Position &position);

} // namespace devicetidy::lsp
