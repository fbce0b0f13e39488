//===- Progress.h - what takes seconds says so ------------------*- C++ -*-===//
//
// The first look at a file reads LibTorch's headers, and an editor that shows nothing meanwhile seems to have
// no findings. LSP 3.15, "Work Done Progress": the server asks for a token to be known, and uses it once it
// is.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/lsp/RawJson.h"

#include "llvm/Support/LSP/Transport.h"

#include <mutex>
#include <string>

namespace devicetidy::lsp {

/// For several threads at once.
class Progress {
public:
  explicit Progress(llvm::lsp::MessageHandler &handler);

  /// The client has said that it shows progress. Nothing is sent before.
  void enable();

  /// Work called `title` begins. What began before has ended.
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
