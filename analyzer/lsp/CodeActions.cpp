#include "analyzer/lsp/CodeActions.h"

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

/// Is `kind` one of those that are asked for, or part of one? The empty kind stands for all.
bool isWanted(llvm::StringRef kind, const std::vector<std::string> &only) {
  return only.empty() || llvm::any_of(only, [kind](llvm::StringRef each) {
           llvm::StringRef rest = kind;
           return each.empty() || (rest.consume_front(each) && (rest.empty() || rest.front() == '.'));
         });
}

/// A WorkspaceEdit. With a version an editor refuses it when the text has changed in the meantime.
json::Value editOf(const ShownFix &fix, bool withVersions) {
  json::Array edits{json::Object{{"range", toJSON(fix.range)}, {"newText", fix.newText}}};
  if (!withVersions)
    return json::Object{{"changes", json::Object{{fix.uri, std::move(edits)}}}};
  json::Object document{{"uri", fix.uri}, {"version", fix.version}};
  return json::Object{{"documentChanges", json::Array{json::Object{{"textDocument", std::move(document)},
                                                                   {"edits", std::move(edits)}}}}};
}

} // namespace

json::Value codeActionsIn(const FileReport &report, const CodeActionRequest &request) {
  json::Array actions;
  if (!isWanted("quickfix", request.only))
    return actions;
  for (const ShownFinding &finding : report.findings) {
    if (!finding.fix || !touches(finding.range, request.range))
      continue;
    const ShownFix &fix = *finding.fix;
    actions.push_back(json::Object{{"title", asTitle(fix.title)},
                                   {"kind", "quickfix"},
                                   {"isPreferred", true},
                                   {"diagnostics", json::Array{finding.diagnostic}},
                                   {"edit", editOf(fix, request.withVersions)}});
  }
  return actions;
}

} // namespace devicetidy::lsp
