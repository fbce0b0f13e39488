//===- Language.h - is a document analysed? ---------------------*- C++ -*-===//
//
// Decides whether the server handles a document.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace devicetidy::lsp {

/// Some editors attach a server to every buffer. Is `file` of C++'s family (C, CUDA and headers among it), by
/// its name, or by `languageId`, the language in the editor?
bool isOfCxxFamily(llvm::StringRef file, llvm::StringRef languageId);

/// Is it a Python file, by its name?
bool isPythonDocument(llvm::StringRef file);

} // namespace devicetidy::lsp
