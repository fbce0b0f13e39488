//===- Progress.h - what takes seconds says so ------------------*- C++ -*-===//
//
// The first analysis of a file reads LibTorch's headers, and without a sign of progress the file seems to
// have no findings. LSP 3.15, "Work Done Progress": the server requests a token, and uses it once the client
// has accepted it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/lsp/RawJson.h"

#include "llvm/Support/LSP/Transport.h"

#include <mutex>
#include <string>

namespace devicetidy::lsp {

/// Thread-safe.
class Progress {
public:
  explicit Progress(llvm::lsp::MessageHandler &handler);

  /// The client supports progress. Nothing is sent before this call.
  void enable();

  /// Begins work with the title `title` and ends the previous work.
  void begin(const std::string &title);
  void end();

private:
  enum class State {
    Idle,
    Asked,    ///< the client has not accepted the token yet
    Outlived, ///< the work ended before it did
    Shown,
  };

  void accepted(bool isKnown);
  void report(llvm::json::Object value);
  std::string token() const { return "device-tidy-progress-" + std::to_string(tokens); }

  std::mutex mutex; ///< guards what follows
  llvm::lsp::OutgoingRequest<RawJson> create;
  llvm::lsp::OutgoingNotification<RawJson> progress;
  bool isEnabled = false;
  State state = State::Idle;
  std::string shownTitle;
  int tokens = 0;
};

} // namespace devicetidy::lsp
