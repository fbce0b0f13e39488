#include "analyzer/report/diagnostic/NoLintPlanner.h"

#include "analyzer/report/diagnostic/NoLint.h"

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
  std::size_t place = begin + last + 1;
  std::string text = " // NOLINT(" + diagnostic.check + ")";
  for (const Token &token : tokensOf(file)) {
    if (token.begin < end && token.end > end)
      return std::nullopt; // what is added would be part of it
    if (token.kind != TokenKind::Comment || token.begin < begin || token.end > end)
      continue;
    if (const std::optional<ListEnd> list = endOfList(token.text)) {
      place = token.begin + list->offset;
      text = (list->isEmpty ? "" : ", ") + diagnostic.check;
    }
  }
  Replacement change;
  change.where = sources.range(file, place, place);
  change.offset = place;
  change.text = std::move(text);
  return Fix{"ignore '" + diagnostic.check + "' on " +
                 (diagnostic.cause.valid() ? "line " + std::to_string(number) : "this line") + " (NOLINT)",
             std::move(change)};
}

} // namespace devicetidy
