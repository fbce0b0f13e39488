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

} // namespace

json::Value codeActionsIn(const FileReport &report, const llvm::lsp::Range &range,
                          const std::vector<std::string> &only) {
  json::Array actions;
  if (!only.empty() && !llvm::is_contained(only, "quickfix"))
    return actions;
  for (const ShownFinding &finding : report.findings) {
    if (!finding.fix || !touches(finding.range, range))
      continue;
    const ShownFix &fix = *finding.fix;
    actions.push_back(json::Object{
        {"title", asTitle(fix.title)},
        {"kind", "quickfix"},
        {"isPreferred", true},
        {"diagnostics", json::Array{finding.diagnostic}},
        {"edit",
         json::Object{
             {"changes", json::Object{{fix.uri, json::Array{json::Object{{"range", toJSON(fix.range)},
                                                                         {"newText", fix.newText}}}}}}}}});
  }
  return actions;
}

} // namespace devicetidy::lsp
