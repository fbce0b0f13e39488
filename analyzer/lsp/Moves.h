//===- Moves.h - where it was moved -----------------------------*- C++ -*-===//
#pragma once

#include "analyzer/lsp/FileReport.h"

namespace devicetidy::lsp {

/// Locations that decided the device of the expression at a position: moves, else where it was made.
llvm::json::Value movesAt(const FileReport &report, const llvm::lsp::Position &position);

} // namespace devicetidy::lsp
