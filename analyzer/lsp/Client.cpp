#include "analyzer/lsp/Client.h"

namespace devicetidy::lsp {
namespace {

namespace json = llvm::json;

json::Array diagnosticsOf(const FileReport &report) {
  json::Array result;
  for (const ShownFinding &finding : report.findings)
    result.push_back(finding.diagnostic);
  return result;
}

} // namespace

Client::Client(llvm::lsp::MessageHandler &handler)
    : publishDiagnostics(handler.outgoingNotification<RawJson>("textDocument/publishDiagnostics")),
      showMessage(handler.outgoingNotification<RawJson>("window/showMessage")) {
  const auto ignore = [](json::Value, llvm::Expected<RawJson> reply) {
    if (!reply)
      llvm::lsp::Logger::error("the client returned an error: {0}", llvm::toString(reply.takeError()));
  };
  registerCapability = handler.outgoingRequest<RawJson, RawJson>("client/registerCapability", ignore);
  refreshHints = handler.outgoingRequest<RawJson, RawJson>("workspace/inlayHint/refresh", ignore);
}

void Client::send(const std::string &uri, std::optional<std::int64_t> version, json::Array diagnostics) {
  json::Object params{{"uri", uri}, {"diagnostics", std::move(diagnostics)}};
  if (version)
    params["version"] = *version;
  publishDiagnostics({std::move(params)});
}

void Client::publish(const Reports &reports) {
  for (auto known = published.begin(); known != published.end();)
    if (reports.count(known->first)) {
      ++known;
    } else {
      send(known->second->uri, std::nullopt, {});
      known = published.erase(known);
    }
  for (const auto &[file, report] : reports) {
    ReportPointer &before = published[file];
    json::Array diagnostics = diagnosticsOf(*report);
    const bool isSame = before && before->version == report->version && diagnosticsOf(*before) == diagnostics;
    before = report;
    if (!isSame)
      send(report->uri, report->version, std::move(diagnostics));
  }
}

void Client::forget(const std::string &file) {
  const auto known = published.find(file);
  if (known == published.end())
    return;
  send(known->second->uri, std::nullopt, {});
  published.erase(known);
}

void Client::showWarning(const std::string &sentence) {
  constexpr int warning = 2;
  showMessage({json::Object{{"type", warning}, {"message", sentence}}});
}

void Client::refreshInlayHints() { refreshHints({nullptr}, "device-tidy-" + std::to_string(++requests)); }

void Client::watchFiles() {
  json::Array watchers;
  for (const char *glob : {"**/compile_commands.json", "**/*.{h,hh,hpp,hxx,inl,ipp,tpp,txx,cc,cpp,cxx,py}"})
    watchers.push_back(json::Object{{"globPattern", glob}});
  registerCapability(
      {json::Object{
          {"registrations",
           json::Array{json::Object{{"id", "device-tidy-files"},
                                    {"method", "workspace/didChangeWatchedFiles"},
                                    {"registerOptions", json::Object{{"watchers", std::move(watchers)}}}}}}}},
      "device-tidy-" + std::to_string(++requests));
}

} // namespace devicetidy::lsp
