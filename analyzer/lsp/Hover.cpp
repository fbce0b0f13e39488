#include "analyzer/lsp/Hover.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <set>

namespace devicetidy::lsp {
namespace {

namespace json = llvm::json;

std::string escaped(llvm::StringRef text) {
  std::string result;
  for (char c : text) {
    if (std::string_view("\\`*_{}[]<>#|").find(c) != std::string_view::npos)
      result += '\\';
    result += c;
  }
  return result;
}

/// Where the quotation that begins at `text[begin]` ends: at a quote with no name behind it.
std::size_t endOfQuotation(llvm::StringRef text, std::size_t begin) {
  std::size_t end = text.find('\'', begin + 1);
  while (end != llvm::StringRef::npos && end + 1 < text.size() && llvm::isAlnum(text[end + 1]))
    end = text.find('\'', end + 1);
  return end;
}

/// A sentence as Markdown. Code is in quotes; as a code span it needs no backslashes, which not every
/// editor takes out again.
std::string asMarkdownText(llvm::StringRef text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t begin = text.find('\''), end = endOfQuotation(text, begin);
    if (begin == llvm::StringRef::npos || end == llvm::StringRef::npos)
      break;
    const llvm::StringRef code = text.slice(begin + 1, end);
    const bool canSpan = !code.empty() && !code.contains('`');
    result += escaped(text.take_front(begin));
    result += canSpan ? "`" + code.str() + "`" : escaped(text.slice(begin, end + 1));
    text = text.drop_front(end + 1);
  }
  return result + escaped(text);
}

std::string lineOf(const ShownStep &step, bool asMarkdown) {
  if (!asMarkdown)
    return "- " + step.text + " (" + step.place + ")\n";
  return "- " + asMarkdownText(step.text) + " ([" + escaped(step.place) + "](" + step.uri + "#L" +
         std::to_string(step.range.start.line + 1) + "))\n";
}

} // namespace

json::Value hoverAt(const FileReport &report, const llvm::lsp::Position &position, bool asMarkdown) {
  const ShownPlacement *placement = report.placementAt(position);
  const std::string sentence = placement ? placement->sentence() : std::string();
  if (sentence.empty())
    return nullptr;
  std::string text = (asMarkdown ? asMarkdownText(sentence) : sentence) + "\n\n";
  std::set<std::string> told; // the histories of two devices often share their first steps
  for (const std::vector<ShownStep> &history : placement->histories)
    for (const ShownStep &step : history)
      if (const std::string line = lineOf(step, asMarkdown); told.insert(line).second)
        text += line;
  text.erase(text.find_last_not_of('\n') + 1);
  return json::Object{
      {"contents", json::Object{{"kind", asMarkdown ? "markdown" : "plaintext"}, {"value", std::move(text)}}},
      {"range", toJSON(placement->range)}};
}

} // namespace devicetidy::lsp
