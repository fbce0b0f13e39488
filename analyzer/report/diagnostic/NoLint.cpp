#include "analyzer/report/diagnostic/NoLint.h"

#include "analyzer/facts/Language.h"
#include "analyzer/report/diagnostic/Noqa.h"
#include "analyzer/report/finding/Glob.h"
#include "analyzer/report/source/PythonComments.h"
#include "analyzer/report/source/Tokens.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace devicetidy {
namespace {

enum class Directive : std::uint8_t { Line, NextLine, Begin, End };

struct Found {
  Directive directive;
  NoLintGlobs globs;
  std::uint32_t line, column;
};

std::optional<Directive> directiveOf(std::string_view word) {
  if (word == "NOLINT")
    return Directive::Line;
  if (word == "NOLINTNEXTLINE")
    return Directive::NextLine;
  if (word == "NOLINTBEGIN")
    return Directive::Begin;
  if (word == "NOLINTEND")
    return Directive::End;
  return std::nullopt;
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\f\v");
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\f\v") - begin + 1);
}

NoLintGlobs globsOf(std::string_view list) {
  NoLintGlobs result;
  result.all = false;
  while (true) {
    const std::size_t comma = list.find(',');
    result.globs.emplace_back(trim(list.substr(0, comma)));
    if (comma == std::string_view::npos)
      return result;
    list.remove_prefix(comma + 1);
  }
}

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Line and column of offsets that only grow.
class Counter {
public:
  explicit Counter(std::string_view source) : source(source) {}
  void moveTo(std::size_t offset) {
    for (; at < offset; ++at)
      if (source[at] == '\n') {
        ++line;
        lineStart = at + 1;
      }
  }
  std::uint32_t line = 1;
  std::uint32_t column() const { return static_cast<std::uint32_t>(at - lineStart + 1); }

private:
  std::string_view source;
  std::size_t at = 0, lineStart = 0;
};

/// The directives of one comment, which begins at `offset` of the file.
void readComment(std::string_view comment, std::size_t offset, Counter &counter, std::vector<Found> &found) {
  static constexpr std::string_view word = "NOLINT";
  std::size_t at = 0;
  while ((at = comment.find(word, at)) != std::string_view::npos) {
    const std::size_t begin = at;
    at += word.size();
    while (at < comment.size() && isLetter(comment[at]))
      ++at;
    const std::optional<Directive> directive = directiveOf(comment.substr(begin, at - begin));
    if (!directive)
      continue;
    NoLintGlobs globs;
    if (at < comment.size() && comment[at] == '(') {
      const std::size_t close = comment.find_first_of("\n)", at + 1);
      if (close != std::string_view::npos && comment[close] == ')') { // else as if there were no list
        globs = globsOf(comment.substr(at + 1, close - at - 1));
        at = close + 1;
      }
    }
    counter.moveTo(offset + begin);
    found.push_back({*directive, std::move(globs), counter.line, counter.column()});
  }
}

void readNoqa(std::string_view comment, std::size_t offset, Counter &counter, std::vector<Found> &found) {
  const std::optional<Noqa> noqa = findNoqa(comment);
  if (!noqa)
    return;
  NoLintGlobs globs;
  globs.all = !noqa->hasList;
  globs.globs.assign(noqa->items.begin(), noqa->items.end());
  counter.moveTo(offset + noqa->begin);
  found.push_back({Directive::Line, std::move(globs), counter.line, counter.column()});
}

std::vector<Found> findInPython(std::string_view source) {
  std::vector<Found> found;
  Counter counter(source);
  for (const PythonComment &comment : pythonComments(source)) {
    readComment(comment.text, comment.begin, counter, found);
    readNoqa(comment.text, comment.begin, counter, found);
  }
  return found;
}

std::vector<Found> findDirectives(std::string_view source) {
  std::vector<Found> found;
  if (source.find("NOLINT") == std::string_view::npos) // almost every file
    return found;
  Counter counter(source);
  for (const Token &token : tokenize(source))
    if (token.kind == TokenKind::Comment)
      readComment(token.text, token.begin, counter, found);
  return found;
}

Diagnostic unmatchedError(Name file, const NoLintFile::Unmatched &unmatched) {
  Diagnostic error;
  error.severity = Severity::Error;
  error.check = noLintCheck;
  const std::uint32_t length = unmatched.isBegin ? 11 : 9;
  error.where = {file, unmatched.line, unmatched.column, unmatched.line, unmatched.column + length};
  error.message = unmatched.isBegin
                      ? "unmatched 'NOLINTBEGIN' comment without a subsequent 'NOLINTEND' comment"
                      : "unmatched 'NOLINTEND' comment without a previous 'NOLINTBEGIN' comment";
  return error;
}

} // namespace

bool NoLintGlobs::matches(std::string_view check) const {
  return all || std::any_of(globs.begin(), globs.end(), [&](const std::string &glob) {
           return !glob.empty() && glob[0] != '-' && globMatches(glob, check);
         });
}

bool NoLintFile::covers(const Line &comment, std::string_view check, std::uint32_t line, std::uint32_t) {
  return comment.line == line && comment.globs.matches(check);
}

bool NoLintFile::covers(const Block &comment, std::string_view check, std::uint32_t line,
                        std::uint32_t column) {
  const bool isAfter = line > comment.line || (line == comment.line && column > comment.column);
  const bool isBefore = line < comment.endLine || (line == comment.endLine && column < comment.endColumn);
  return isAfter && isBefore && comment.globs.matches(check);
}

bool NoLintFile::suppressesLine(std::string_view check, const Location &where) const {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const Line &comment) { return covers(comment, check, where.line, where.column); });
}

bool NoLintFile::suppressesPart(std::string_view check, const Location &where) const {
  return std::any_of(blocks.begin(), blocks.end(),
                     [&](const Block &comment) { return covers(comment, check, where.line, where.column); });
}

NoLintFile readNoLint(std::string_view source, bool isPython) {
  NoLintFile result;
  std::vector<Found> open;
  for (Found &found : isPython ? findInPython(source) : findDirectives(source)) {
    switch (found.directive) {
    case Directive::Line:
    case Directive::NextLine:
      result.lines.push_back({found.line + (found.directive == Directive::NextLine ? 1 : 0), found.line,
                              found.column, std::move(found.globs)});
      break;
    case Directive::Begin:
      open.push_back(std::move(found));
      break;
    case Directive::End:
      if (!open.empty() && open.back().globs == found.globs) {
        const Found &begin = open.back();
        result.blocks.push_back({begin.line, begin.column, found.line, found.column, begin.globs});
        open.pop_back();
      } else {
        result.unmatched.push_back({found.line, found.column, false});
      }
    }
  }
  for (const Found &begin : open)
    result.unmatched.push_back({begin.line, begin.column, true});
  std::sort(result.unmatched.begin(), result.unmatched.end(), [](const auto &a, const auto &b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  return result;
}

std::size_t applyNoLint(std::vector<Diagnostic> &diagnostics, SourceCache &sources) {
  std::map<Name, NoLintFile> files;
  std::size_t count = 0;
  const auto commentsOf = [&](Name file) -> const NoLintFile & {
    const auto [entry, isNew] = files.try_emplace(file);
    if (isNew)
      entry->second = readNoLint(sources.text(file), isPython(file.view()));
    return entry->second;
  };
  for (Diagnostic &diagnostic : diagnostics) {
    const Location &made = suppressedAt(diagnostic);
    diagnostic.isSuppressed =
        commentsOf(made.file).suppressesLine(diagnostic.check, made) ||
        commentsOf(made.file).suppressesPart(diagnostic.check, made) ||
        commentsOf(diagnostic.where.file).suppressesPart(diagnostic.check, diagnostic.where);
    count += diagnostic.isSuppressed ? 1 : 0;
    if (!diagnostic.isSuppressed && diagnostic.cause.valid() &&
        commentsOf(diagnostic.where.file).suppressesLine(diagnostic.check, diagnostic.where))
      diagnostic.notes.push_back(
          {made,
           "the mistake is made here: a NOLINT belongs on this line, for others may fail at the same place",
           true});
  }
  for (const auto &[file, suppressions] : files)
    for (const NoLintFile::Unmatched &unmatched : suppressions.unmatched) {
      Diagnostic error = unmatchedError(file, unmatched);
      const auto byPlace = [](const Diagnostic &a, const Diagnostic &b) { return a.where < b.where; };
      const auto place = std::upper_bound(diagnostics.begin(), diagnostics.end(), error, byPlace);
      diagnostics.insert(place, std::move(error));
    }
  return count;
}

} // namespace devicetidy
