//===- Input.h - messages as they come in -----------------------*- C++ -*-===//
#pragma once

#include "llvm/Support/JSON.h"
#include "llvm/Support/LSP/Transport.h"

#include <cstdio>
#include <string>

namespace devicetidy::lsp {

/// Reads messages, passes on those that are JSON-RPC (LLVM's transport would stop at others), and knows the
/// id of the request that is being handled, which LLVM's message handler does not tell.
class Input : public llvm::lsp::JSONTransportInput {
public:
  explicit Input(std::FILE *file) : inner(file) {}

  bool hasError() const override { return inner.hasError(); }
  bool isEndOfInput() const override { return inner.isEndOfInput(); }
  llvm::LogicalResult readStandardMessage(std::string &json) override;
  llvm::LogicalResult readDelimitedMessage(std::string &json) override {
    return inner.readDelimitedMessage(json);
  }

  /// Of the last message, as text; empty for a notification.
  const std::string &requestId() const { return id; }

private:
  llvm::lsp::JSONTransportInputOverFile inner;
  std::string id;
};

/// An id as text that tells 1 from "1".
std::string idText(const llvm::json::Value &id);

} // namespace devicetidy::lsp
