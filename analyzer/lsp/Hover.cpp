#include "analyzer/lsp/Hover.h"

#include <algorithm>
#include <set>

namespace devicetidy::lsp {
namespace {

namespace json = llvm::json;

std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text) {
    if (std::string_view("\\`*_{}[]<>#|").find(c) != std::string_view::npos)
      result += '\\';
    result += c;
  }
  return result;
}

std::string lineOf(const ShownStep &step, bool asMarkdown) {
  if (!asMarkdown)
    return "- " + step.text + " (" + step.place + ")\n";
  return "- " + escaped(step.text) + " ([" + escaped(step.place) + "](" + step.uri + "#L" +
         std::to_string(step.range.start.line + 1) + "))\n";
}

} // namespace

json::Value hoverAt(const FileReport &report, const llvm::lsp::Position &position, bool asMarkdown) {
  const ShownPlacement *placement = report.placementAt(position);
  if (!placement)
    return nullptr;
  std::string text = (asMarkdown ? escaped(placement->sentence) : placement->sentence) + "\n\n";
  std::set<std::string> told; // the stories of two devices often share their first steps
  for (const std::vector<ShownStep> &witness : placement->witnesses)
    for (const ShownStep &step : witness)
      if (const std::string line = lineOf(step, asMarkdown); told.insert(line).second)
        text += line;
  text.erase(text.find_last_not_of('\n') + 1);
  return json::Object{
      {"contents", json::Object{{"kind", asMarkdown ? "markdown" : "plaintext"}, {"value", std::move(text)}}},
      {"range", toJSON(placement->range)}};
}

} // namespace devicetidy::lsp
