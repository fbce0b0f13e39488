//===- Input.h - reads messages ---------------------------------*- C++ -*-===//
//
// Reads the messages of the editor from standard input.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/Support/JSON.h"
#include "llvm/Support/LSP/Transport.h"

#include <cstdio>
#include <string>

namespace devicetidy::lsp {

/// Reads messages as the protocol frames them. (LLVM's reader accepts only "Content-Length: " exactly;
/// names of headers may be written in any case, and the blank may be missing.) Passes on those that are
/// JSON-RPC (LLVM's transport would stop at others), and knows the id of the request that is being handled,
/// which LLVM's message handler does not provide.
class Input : public llvm::lsp::JSONTransportInput {
public:
  explicit Input(std::FILE *file) : file(file) {}

  bool hasError() const override { return std::ferror(file) != 0; }
  bool isEndOfInput() const override { return std::feof(file) != 0; }
  llvm::LogicalResult readStandardMessage(std::string &json) override;
  llvm::LogicalResult readDelimitedMessage(std::string &) override { return llvm::failure(); } // for tests

  /// Of the last message, as text; empty for a notification.
  const std::string &requestId() const { return id; }

private:
  int nextCharacter();
  bool readLine(std::string &line);
  bool readBody(std::size_t length, std::string &body);
  bool readFramed(std::string &body);

  std::FILE *file;
  std::string id;
};

/// An id as text that tells 1 from "1".
std::string idText(const llvm::json::Value &id);

} // namespace devicetidy::lsp
