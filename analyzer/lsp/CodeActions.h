//===- CodeActions.h - fixes to choose from ---------------------*- C++ -*-===//
#pragma once

#include "analyzer/lsp/FileReport.h"

#include <string>
#include <vector>

namespace devicetidy::lsp {

/// The quick fixes of the findings that `range` touches. `only`: the kinds the client asks for; empty: all.
llvm::json::Value codeActionsIn(const FileReport &report, const llvm::lsp::Range &range,
                                const std::vector<std::string> &only);

} // namespace devicetidy::lsp
