#include "analyzer/lsp/Server.h"

#include "analyzer/driver/support/Paths.h"
#include "analyzer/lsp/CodeActions.h"
#include "analyzer/lsp/Folders.h"
#include "analyzer/lsp/Hover.h"
#include "analyzer/lsp/InlayHints.h"
#include "analyzer/lsp/Language.h"
#include "analyzer/lsp/Moves.h"

#include "DeviceTidyConfig.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>

namespace devicetidy::lsp {
namespace {

namespace json = llvm::json;
using llvm::lsp::ErrorCode;
using llvm::lsp::LSPError;

/// The member of nested objects, or null.
const json::Value *find(const json::Value &value, std::initializer_list<llvm::StringRef> path) {
  const json::Value *current = &value;
  for (llvm::StringRef name : path) {
    const json::Object *object = current->getAsObject();
    current = object ? object->get(name) : nullptr;
    if (!current)
      return nullptr;
  }
  return current;
}

bool isTrue(const json::Value &value, std::initializer_list<llvm::StringRef> path) {
  const json::Value *found = find(value, path);
  return found && found->getAsBoolean().value_or(false);
}

bool listsMarkdown(const json::Value &formats) {
  const json::Array *array = formats.getAsArray();
  return array && !array->empty() && array->front().getAsString() == llvm::StringRef("markdown");
}

json::Value capabilities() {
  return json::Object{
      {"positionEncoding", "utf-16"},
      {"textDocumentSync",
       json::Object{{"openClose", true}, {"change", 2}, {"save", json::Object{{"includeText", false}}}}},
      {"codeActionProvider", json::Object{{"codeActionKinds", json::Array{"quickfix", fixAllKind}}}},
      {"workspace",
       json::Object{{"workspaceFolders", json::Object{{"supported", true}, {"changeNotifications", true}}}}},
      {"hoverProvider", true},
      {"implementationProvider", true},
      {"inlayHintProvider", true}};
}

std::string fileOf(const llvm::lsp::URIForFile &uri) { return driver::absolutePath(uri.file()); }

} // namespace

Server::Server(const driver::Options &options, const Input &input, llvm::lsp::MessageHandler &handler)
    : input(input), settings(options), client(handler), progress(handler),
      worker(
          options,
          [this](Workspace::Result result, std::uint64_t analysis) { take(std::move(result), analysis); },
          [this](bool begins) { begins ? progress.begin("device-tidy: reading headers") : progress.end(); }) {
  handler.method("initialize", this, &Server::onInitialize);
  handler.notification("initialized", this, &Server::onInitialized);
  handler.method("shutdown", this, &Server::onShutdown);
  handler.notification("$/cancelRequest", this, &Server::onCancel);
  handler.notification("textDocument/didOpen", this, &Server::onOpen);
  handler.notification("textDocument/didChange", this, &Server::onChange);
  handler.notification("textDocument/didSave", this, &Server::onSave);
  handler.notification("textDocument/didClose", this, &Server::onClose);
  handler.notification("workspace/didChangeConfiguration", this, &Server::onConfiguration);
  handler.notification("workspace/didChangeWatchedFiles", this, &Server::onWatchedFiles);
  handler.notification("workspace/didChangeWorkspaceFolders", this, &Server::onFolders);
  handler.method("textDocument/hover", this, &Server::onHover);
  handler.method("textDocument/implementation", this, &Server::onImplementation);
  handler.method("textDocument/codeAction", this, &Server::onCodeAction);
  handler.method("textDocument/inlayHint", this, &Server::onInlayHint);
}

void Server::onInitialize(const RawJson &params, Reply reply) {
  if (state != State::New)
    return reply(llvm::make_error<LSPError>("already initialized", ErrorCode::InvalidRequest));
  state = State::Running;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    settings.folders = openFolders(params.value);
    settings.relatedInformation =
        isTrue(params.value, {"capabilities", "textDocument", "publishDiagnostics", "relatedInformation"});
    settings.versionedEdits =
        isTrue(params.value, {"capabilities", "workspace", "workspaceEdit", "documentChanges"});
    settings.inlayRefresh =
        isTrue(params.value, {"capabilities", "workspace", "inlayHint", "refreshSupport"});
    if (const json::Value *formats =
            find(params.value, {"capabilities", "textDocument", "hover", "contentFormat"}))
      settings.markdownHover = listsMarkdown(*formats);
  }
  if (isTrue(params.value, {"capabilities", "window", "workDoneProgress"}))
    progress.enable();
  canWatchFiles =
      isTrue(params.value, {"capabilities", "workspace", "didChangeWatchedFiles", "dynamicRegistration"});
  // An editor that has its reply may end at any time.
  if (const json::Value *id = find(params.value, {"processId"}))
    editor.follow(id->getAsInteger().value_or(0));
  reply(
      json::Object{{"capabilities", capabilities()},
                   {"serverInfo", json::Object{{"name", "device-tidy"}, {"version", DEVICE_TIDY_VERSION}}}});
  if (const json::Value *chosen = find(params.value, {"initializationOptions"}))
    configure(*chosen, /*isSection=*/true);
}

void Server::onInitialized(const RawJson &) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (isServing() && canWatchFiles)
    client.watchFiles();
}

void Server::onShutdown(const RawJson &, Reply reply) {
  if (!isServing())
    return refuse(std::move(reply));
  state = State::ShutDown;
  std::map<std::string, Waiting> open;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    open.swap(waiting);
  }
  for (auto &[id, each] : open)
    each.reply(llvm::make_error<LSPError>("the server shuts down", ErrorCode::RequestCancelled));
  reply(nullptr);
}

driver::ExitCode Server::end() {
  const driver::ExitCode code =
      state == State::ShutDown ? driver::ExitCode::Clean : driver::ExitCode::Findings;
  // Precompiled headers may be in the making; nothing waits for them any more. Without a cache there is a
  // directory to clean up.
  const std::chrono::milliseconds patience(settings.options.noCache ? 60000 : 300);
  if (!worker.end(patience)) {
    llvm::outs().flush();
    std::_Exit(static_cast<int>(code));
  }
  return code;
}

void Server::refuse(Reply reply) const {
  if (state == State::New)
    reply(llvm::make_error<LSPError>("not initialized yet", ErrorCode::ServerNotInitialized));
  else
    reply(llvm::make_error<LSPError>("the server was shut down", ErrorCode::InvalidRequest));
}

void Server::onCancel(const RawJson &params) {
  const json::Value *id = find(params.value, {"id"});
  if (!id)
    return;
  std::unique_lock<std::mutex> lock(mutex);
  const auto found = waiting.find(idText(*id));
  if (found == waiting.end())
    return; // answered already
  Reply reply = std::move(found->second.reply);
  waiting.erase(found);
  lock.unlock();
  reply(llvm::make_error<LSPError>("cancelled", ErrorCode::RequestCancelled));
}

void Server::onOpen(const llvm::lsp::DidOpenTextDocumentParams &params) {
  const llvm::lsp::TextDocumentItem &document = params.textDocument;
  const std::string file = fileOf(document.uri);
  if (!isPythonDocument(file) && !isOfCxxFamily(file, document.languageId))
    return; // what else comes for it is for a document that is not open
  documents.open(file, document.uri.uri().str(), document.version, document.text);
  analyse(Worker::When::Now, /*onDisk=*/true);
}

/// The version is missing or null where clients follow the protocol before 3.16.
void Server::onChange(const RawJson &params) {
  const json::Value *uri = find(params.value, {"textDocument", "uri"});
  const json::Value *version = find(params.value, {"textDocument", "version"});
  const json::Value *given = find(params.value, {"contentChanges"});
  llvm::lsp::URIForFile file;
  std::vector<llvm::lsp::TextDocumentContentChangeEvent> changes;
  json::Path::Root root("textDocument/didChange");
  if (!uri || !given || !fromJSON(*uri, file, root) || !fromJSON(*given, changes, root)) {
    llvm::lsp::Logger::error("textDocument/didChange needs textDocument.uri and contentChanges");
    return;
  }
  if (documents.change(fileOf(file), version ? version->getAsInteger() : std::nullopt, changes))
    analyse(Worker::When::AfterTyping, /*onDisk=*/false);
}

void Server::onSave(const RawJson &params) {
  const json::Value *uri = find(params.value, {"textDocument", "uri"});
  llvm::lsp::URIForFile file;
  json::Path::Root root;
  if (!uri || !fromJSON(*uri, file, root))
    return;
  documents.saved(fileOf(file));
  analyse(Worker::When::Now, /*onDisk=*/true);
}

void Server::onClose(const llvm::lsp::DidCloseTextDocumentParams &params) {
  const std::string file = fileOf(params.textDocument.uri);
  documents.close(file);
  std::vector<Reply> unanswered;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    client.forget(file);
    reports.erase(file);
    for (auto each = waiting.begin(); each != waiting.end();)
      if (each->second.file == file) {
        unanswered.push_back(std::move(each->second.reply));
        each = waiting.erase(each);
      } else {
        ++each;
      }
  }
  for (Reply &reply : unanswered)
    reply(nullptr);
  analyse(Worker::When::Now, /*onDisk=*/true);
}

/// What editors send is {"device-tidy": {...}} (VS Code: the section's name) or the settings themselves, or
/// all that the user has ever set, for whichever server.
void Server::onConfiguration(const RawJson &params) {
  const json::Value *given = find(params.value, {"settings"});
  if (!given || !isServing())
    return;
  const json::Value *section = find(*given, {"device-tidy"});
  configure(section ? *section : *given, section != nullptr);
  analyse(Worker::When::Now, /*onDisk=*/false);
}

void Server::configure(const json::Value &chosen, bool isSection) {
  const std::lock_guard<std::mutex> lock(mutex);
  const bool hadHints = settings.inlayHints;
  for (const std::string &problem : applySettings(chosen, isSection, settings))
    client.showWarning(problem);
  if (settings.inlayHints != hadHints && settings.inlayRefresh)
    client.refreshInlayHints();
}

void Server::onFolders(const RawJson &params) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    changeFolders(params.value, settings.folders);
  }
  analyse(Worker::When::Now, /*onDisk=*/false);
}

void Server::onWatchedFiles(const RawJson &) { analyse(Worker::When::AfterTyping, /*onDisk=*/true); }

void Server::analyse(Worker::When when, bool onDisk) {
  if (!isServing())
    return;
  Settings now;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    now = settings;
  }
  newest = worker.analyse(documents.all(), std::move(now), when, onDisk);
}

/// Does an unchanged document get other hints? Then an edit elsewhere has moved something, and the editor has
/// no reason to ask.
bool Server::changesHints(const Reports &now) const {
  constexpr int end = std::numeric_limits<int>::max();
  const llvm::lsp::Range all({0, 0}, {end, end});
  return llvm::any_of(now, [&](const auto &entry) {
    const auto before = reports.find(entry.first);
    return before != reports.end() && entry.second->version &&
           before->second->version == entry.second->version &&
           inlayHintsIn(*before->second, all) != inlayHintsIn(*entry.second, all);
  });
}

/// Called by the worker's thread.
void Server::take(Workspace::Result result, std::uint64_t analysis) {
  std::vector<std::pair<Waiting, ReportPointer>> ready;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    for (const std::string &problem : result.problems)
      client.showWarning(problem);
    if (settings.inlayHints && settings.inlayRefresh && changesHints(result.reports))
      client.refreshInlayHints();
    reports = std::move(result.reports);
    reported = analysis;
    client.publish(reports);
    for (auto each = waiting.begin(); each != waiting.end();) {
      const auto report = reports.find(each->second.file);
      if (analysis >= each->second.analysis && report != reports.end() &&
          report->second->version >= each->second.version) {
        ready.emplace_back(std::move(each->second), report->second);
        each = waiting.erase(each);
      } else {
        ++each;
      }
    }
  }
  for (auto &[request, report] : ready)
    request.reply(request.answer(*report));
}

/// Are its repairs made for the texts that are open now?
bool Server::repairsWhatIsOpen(const FileReport &report) const {
  return llvm::all_of(report.findings, [this](const ShownFinding &finding) {
    if (!finding.fix)
      return true;
    const Document *document = documents.findUri(finding.fix->uri);
    return finding.fix->version == (document ? std::optional(document->version) : std::nullopt);
  });
}

/// `about`: is the answer of the text of `uri` alone, or may it name places in other documents that must
/// be where they were?
void Server::answerWith(const llvm::lsp::URIForFile &uri, About about, Reply reply, Answer answer) {
  if (!isServing())
    return refuse(std::move(reply));
  const std::string file = fileOf(uri);
  const Document *document = documents.find(file);
  if (!document)
    return reply(nullptr);
  ReportPointer report;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = reports.find(file);
    const bool isKnown = found != reports.end() && found->second->version >= document->version;
    const bool isOld =
        isKnown && about == About::AllTexts && reported < newest && !repairsWhatIsOpen(*found->second);
    if (!isKnown || isOld) {
      waiting[input.requestId()] = {file, document->version, about == About::AllTexts ? newest : 0,
                                    std::move(answer), std::move(reply)};
      return;
    }
    report = found->second;
  }
  reply(answer(*report));
}

void Server::onHover(const llvm::lsp::TextDocumentPositionParams &params, Reply reply) {
  const llvm::lsp::Position position = params.position;
  const bool asMarkdown = settings.markdownHover;
  answerWith(
      params.textDocument.uri, About::ThisText, std::move(reply),
      [position, asMarkdown](const FileReport &report) { return hoverAt(report, position, asMarkdown); });
}

void Server::onImplementation(const llvm::lsp::TextDocumentPositionParams &params, Reply reply) {
  const llvm::lsp::Position position = params.position;
  answerWith(params.textDocument.uri, About::ThisText, std::move(reply),
             [position](const FileReport &report) { return movesAt(report, position); });
}

void Server::onCodeAction(const RawJson &params, Reply reply) {
  const json::Value *uri = find(params.value, {"textDocument", "uri"});
  const json::Value *where = find(params.value, {"range"});
  llvm::lsp::URIForFile file;
  llvm::lsp::Range range;
  json::Path::Root root;
  if (!uri || !where || !fromJSON(*uri, file, root) || !fromJSON(*where, range, root))
    return reply(
        llvm::make_error<LSPError>("textDocument.uri and range are needed", ErrorCode::InvalidParams));
  CodeActionRequest request{range, {}, settings.versionedEdits};
  if (const json::Value *kinds = find(params.value, {"context", "only"}))
    fromJSON(*kinds, request.only, root);
  answerWith(file, About::AllTexts, std::move(reply),
             [request](const FileReport &report) { return codeActionsIn(report, request); });
}

void Server::onInlayHint(const llvm::lsp::InlayHintsParams &params, Reply reply) {
  const llvm::lsp::Range range = params.range;
  if (isServing() && !settings.inlayHints)
    return reply(json::Array{});
  answerWith(params.textDocument.uri, About::ThisText, std::move(reply),
             [range](const FileReport &report) { return inlayHintsIn(report, range); });
}

} // namespace devicetidy::lsp
