//===- Serve.h - device-tidy --lsp ------------------------------*- C++ -*-===//
//
// The language server: findings while typing, their fixes, and where variables live. It answers nothing that
// clangd answers, so that an editor can run both.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/commands/Run.h"

namespace devicetidy::lsp {

/// Serves the editor on standard input and output. Clean when it shut down in order, Findings (1, as the
/// protocol requires) when it ended without a shutdown.
driver::ExitCode serve(const driver::Options &options);

} // namespace devicetidy::lsp
