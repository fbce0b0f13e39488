#include "analyzer/lsp/CodeActions.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace devicetidy::lsp {
namespace {

namespace json = llvm::json;

bool touches(const llvm::lsp::Range &a, const llvm::lsp::Range &b) {
  return a.start <= b.end && b.start <= a.end;
}

std::string asTitle(std::string text) {
  if (!text.empty())
    text[0] = llvm::toUpper(text[0]);
  return text;
}

/// Is `kind` one of those that are requested, or part of one? The empty kind means all.
bool isWanted(llvm::StringRef kind, const std::vector<std::string> &only) {
  return only.empty() || llvm::any_of(only, [kind](llvm::StringRef each) {
           llvm::StringRef rest = kind;
           return each.empty() || (rest.consume_front(each) && (rest.empty() || rest.front() == '.'));
         });
}

/// A WorkspaceEdit of one file. With a version an editor refuses it when the text has changed in the
/// meantime.
json::Value editOf(llvm::ArrayRef<ShownFix> changes, bool withVersions) {
  const ShownFix &first = changes.front();
  json::Array edits;
  for (const ShownFix &each : changes)
    edits.push_back(json::Object{{"range", toJSON(each.range)}, {"newText", each.newText}});
  if (!withVersions)
    return json::Object{{"changes", json::Object{{first.uri, std::move(edits)}}}};
  json::Object document{{"uri", first.uri}, {"version", first.version}};
  return json::Object{{"documentChanges", json::Array{json::Object{{"textDocument", std::move(document)},
                                                                   {"edits", std::move(edits)}}}}};
}

json::Object quickFix(const ShownFix &fix, const ShownFinding &finding, bool withVersions) {
  return json::Object{{"title", asTitle(fix.title)},
                      {"kind", "quickfix"},
                      {"diagnostics", json::Array{finding.diagnostic}},
                      {"edit", editOf(fix, withVersions)}};
}

} // namespace

json::Value codeActionsIn(const FileReport &report, const CodeActionRequest &request) {
  std::vector<const ShownFinding *> here;
  for (const ShownFinding &finding : report.findings)
    if (touches(finding.range, request.range))
      here.push_back(&finding);
  json::Array actions;
  const bool areFixesWanted = isWanted("quickfix", request.only);
  for (const ShownFinding *finding : here)
    if (areFixesWanted && finding->fix) {
      json::Object action = quickFix(*finding->fix, *finding, request.withVersions);
      action["isPreferred"] = true;
      actions.push_back(std::move(action));
    }
  for (const ShownFinding *finding : here)
    if (areFixesWanted && finding->suppression)
      actions.push_back(quickFix(*finding->suppression, *finding, request.withVersions));
  // A request for all kinds asks what can be done at this place.
  const bool isAskedFor = llvm::any_of(request.only, [](const std::string &kind) { return !kind.empty(); });
  const bool isHere =
      llvm::any_of(here, [](const ShownFinding *finding) { return finding->fix.has_value(); });
  if (isWanted(fixAllKind, request.only) && !report.repairs.empty() && (isAskedFor || isHere))
    actions.push_back(json::Object{{"title", "Fix all findings of device-tidy in this file"},
                                   {"kind", fixAllKind},
                                   {"edit", editOf(report.repairs, request.withVersions)}});
  return actions;
}

} // namespace devicetidy::lsp
