//===- Folders.h - the folders open in the editor ---------------*- C++ -*-===//
//
// Reads the workspace folders from requests and notifications.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace devicetidy::lsp {

/// The folders that are open in the editor, absolute: "workspaceFolders" of an initialize request, else
/// "rootUri", else "rootPath". None when the client names none.
std::vector<std::string> openFolders(const llvm::json::Value &initializeParams);

/// Applies a workspace/didChangeWorkspaceFolders notification.
void changeFolders(const llvm::json::Value &params, std::vector<std::string> &folders);

} // namespace devicetidy::lsp
