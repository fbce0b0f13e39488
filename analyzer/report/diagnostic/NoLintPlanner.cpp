#include "analyzer/report/diagnostic/NoLintPlanner.h"

#include "analyzer/facts/Language.h"
#include "analyzer/report/diagnostic/NoLint.h"
#include "analyzer/report/diagnostic/Noqa.h"
#include "analyzer/report/source/PythonComments.h"

#include <string>
#include <string_view>

namespace devicetidy {
namespace {

/// Where a check goes into the list of a NOLINT in `comment`, and what stands before it there.
struct ListEnd {
  std::size_t offset;
  bool isEmpty;
};

std::optional<ListEnd> endOfList(std::string_view comment) {
  static constexpr std::string_view word = "NOLINT(";
  const std::size_t begin = comment.find(word);
  const std::size_t end = begin == std::string_view::npos ? begin : comment.find_first_of("\n)", begin);
  if (end == std::string_view::npos || comment[end] != ')')
    return std::nullopt;
  const std::size_t list = begin + word.size();
  return ListEnd{end, comment.substr(list, end - list).find_first_not_of(" \t") == std::string_view::npos};
}

} // namespace

const std::vector<Token> &NoLintPlanner::tokensOf(Name file) {
  const auto [entry, isNew] = tokens.try_emplace(file);
  if (isNew)
    entry->second = tokenize(sources.text(file));
  return entry->second;
}

std::optional<NoLintPlanner::Addition> NoLintPlanner::planCxx(Name file, std::size_t begin, std::size_t end,
                                                              const std::string &check) {
  const std::string_view line = sources.text(file).substr(begin, end - begin);
  Addition addition{begin + line.find_last_not_of(" \t") + 1, " // NOLINT(" + check + ")"};
  for (const Token &token : tokensOf(file)) {
    if (token.begin < end && token.end > end)
      return std::nullopt; // what is added would be part of it
    if (token.kind != TokenKind::Comment || token.begin < begin || token.end > end)
      continue;
    if (const std::optional<ListEnd> list = endOfList(token.text))
      addition = {token.begin + list->offset, (list->isEmpty ? "" : ", ") + check};
  }
  return addition;
}

std::optional<NoLintPlanner::Addition> NoLintPlanner::planPython(Name file, std::size_t begin,
                                                                 std::size_t end, const std::string &check) {
  const std::string_view text = sources.text(file), line = text.substr(begin, end - begin);
  if (isInPythonString(text, end))
    return std::nullopt;
  Addition addition{begin + line.find_last_not_of(" \t") + 1, "  # noqa: " + check};
  for (const PythonComment &comment : pythonComments(text)) {
    if (comment.begin < begin || comment.begin >= end)
      continue;
    if (const std::optional<ListEnd> list = endOfList(comment.text))
      addition = {comment.begin + list->offset, (list->isEmpty ? "" : ", ") + check};
    else if (const std::optional<Noqa> noqa = findNoqa(comment.text); noqa && noqa->hasList)
      addition = {comment.begin + noqa->end, (noqa->items.empty() ? " " : ", ") + check};
  }
  return addition;
}

std::optional<Fix> NoLintPlanner::plan(const Diagnostic &diagnostic) {
  const Name file = suppressedAt(diagnostic).file;
  const std::uint32_t number = suppressedAt(diagnostic).line;
  const std::optional<std::string_view> line = sources.line(file, number);
  const auto start = sources.bytes({file, number, 1, number, 1});
  if (!line || !start || diagnostic.check == noLintCheck)
    return std::nullopt;
  const std::size_t begin = start->first, end = begin + line->size();
  const std::size_t last = line->find_last_not_of(" \t");
  if (last == std::string_view::npos || (*line)[last] == '\\')
    return std::nullopt;
  const bool isInPython = isPython(file.view());
  std::optional<Addition> addition = isInPython ? planPython(file, begin, end, diagnostic.check)
                                                : planCxx(file, begin, end, diagnostic.check);
  if (!addition)
    return std::nullopt;
  Replacement change;
  change.where = sources.range(file, addition->place, addition->place);
  change.offset = addition->place;
  change.text = std::move(addition->text);
  return Fix{"ignore '" + diagnostic.check + "' on " +
                 (diagnostic.cause.valid() ? "line " + std::to_string(number) : "this line") +
                 (isInPython ? " (noqa)" : " (NOLINT)"),
             std::move(change)};
}

} // namespace devicetidy
