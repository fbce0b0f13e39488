//===- Client.h - what is sent to the editor --------------------*- C++ -*-===//
//
// Sends notifications and requests of the server to the editor.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/lsp/Present.h"
#include "analyzer/lsp/RawJson.h"

#include "llvm/Support/LSP/Transport.h"

#include <map>
#include <string>

namespace devicetidy::lsp {

/// The notifications and requests of the server. Not thread-safe.
class Client {
public:
  explicit Client(llvm::lsp::MessageHandler &handler);

  /// Publishes the findings of all reports, and removes those of files without a report.
  void publish(const Reports &reports);
  /// Removes the findings of a file that was closed.
  void forget(const std::string &file);

  void showWarning(const std::string &sentence);
  void refreshInlayHints();
  void watchFiles();

private:
  void send(const std::string &uri, std::optional<std::int64_t> version, llvm::json::Array diagnostics);

  llvm::lsp::OutgoingNotification<RawJson> publishDiagnostics, showMessage;
  llvm::lsp::OutgoingRequest<RawJson> registerCapability, refreshHints;
  std::map<std::string, ReportPointer> published; ///< by file, those with findings and open ones
  int requests = 0;
};

} // namespace devicetidy::lsp
