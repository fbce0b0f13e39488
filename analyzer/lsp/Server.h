//===- Server.h - the conversation with one editor --------------*- C++ -*-===//
//
// Messages are handled on the thread that reads them and never wait for an analysis: what needs one is
// answered by the worker's thread when it has a report of the document as it was when the request came, or
// of a newer one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/commands/Run.h"
#include "analyzer/lsp/Client.h"
#include "analyzer/lsp/EditorProcess.h"
#include "analyzer/lsp/Input.h"
#include "analyzer/lsp/Progress.h"
#include "analyzer/lsp/Worker.h"

#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace devicetidy::lsp {

class Server {
public:
  Server(const driver::Options &options, const Input &input, llvm::lsp::MessageHandler &handler);

  /// To be called when there are no more messages.
  driver::ExitCode end();

private:
  using Reply = llvm::lsp::Callback<llvm::json::Value>;
  using Answer = std::function<llvm::json::Value(const FileReport &)>;
  /// A request that waits for a report.
  struct Waiting {
    std::string file;
    std::int64_t version = 0;
    std::uint64_t analysis = 0; ///< or a later one
    Answer answer;
    Reply reply;
  };

  void onInitialize(const RawJson &params, Reply reply);
  void onInitialized(const RawJson &);
  void onShutdown(const RawJson &, Reply reply);
  void onCancel(const RawJson &params);
  void onOpen(const llvm::lsp::DidOpenTextDocumentParams &params);
  void onChange(const RawJson &params);
  void onSave(const RawJson &params);
  void onClose(const llvm::lsp::DidCloseTextDocumentParams &params);
  void onConfiguration(const RawJson &params);
  void onWatchedFiles(const RawJson &);
  void onFolders(const RawJson &params);
  void onHover(const llvm::lsp::TextDocumentPositionParams &params, Reply reply);
  void onImplementation(const llvm::lsp::TextDocumentPositionParams &params, Reply reply);
  void onCodeAction(const RawJson &params, Reply reply);
  void onInlayHint(const llvm::lsp::InlayHintsParams &params, Reply reply);

  bool isServing() const { return state == State::Running; }
  void configure(const llvm::json::Value &settings, bool isSection);
  enum class About { ThisText, AllTexts };
  void answerWith(const llvm::lsp::URIForFile &uri, About about, Reply reply, Answer answer);
  bool repairsWhatIsOpen(const FileReport &report) const;
  void refuse(Reply reply) const;
  void analyse(Worker::When when, bool onDisk);
  bool changesHints(const Reports &now) const;
  void take(Workspace::Result result, std::uint64_t analysis);

  enum class State { New, Running, ShutDown };

  const Input &input;
  State state = State::New;
  Documents documents;
  bool canWatchFiles = false;
  std::uint64_t newest = 0; ///< analysis that was requested

  std::mutex mutex; ///< guards what follows
  Settings settings;
  Client client;
  Reports reports;
  std::uint64_t reported = 0;             ///< the analysis that they are of
  std::map<std::string, Waiting> waiting; ///< by request id

  Progress progress;
  EditorProcess editor;
  Worker worker; ///< last: its thread uses the rest
};

} // namespace devicetidy::lsp
