#include "analyzer/report/fix/FixPlanner.h"

#include "analyzer/facts/Language.h"

#include <algorithm>
#include <cctype>

namespace devicetidy {
namespace {

bool isSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Does `source`, with its white space made single spaces, begin like `text`, which may end in "..."?
bool saysTheSame(std::string_view source, std::string_view text) {
  static constexpr std::string_view cut = "...";
  const bool isCut = text.size() > 50 && text.substr(text.size() - cut.size()) == cut;
  if (isCut)
    text.remove_suffix(cut.size());
  std::string plain;
  for (char c : source) {
    if (isCut && plain.size() >= text.size())
      break;
    if (!isSpace(c))
      plain += c;
    else if (!plain.empty() && plain.back() != ' ')
      plain += ' ';
  }
  return isCut ? plain.substr(0, text.size()) == text : plain == text;
}

} // namespace

void collectMacros(std::string_view source, std::set<std::string, std::less<>> &names) {
  static constexpr std::string_view word = "define";
  for (std::size_t at = source.find(word); at != std::string_view::npos; at = source.find(word, at)) {
    std::size_t hash = at;
    while (hash > 0 && (source[hash - 1] == ' ' || source[hash - 1] == '\t'))
      --hash;
    at += word.size();
    if (hash == 0 || source[hash - 1] != '#')
      continue;
    const std::size_t begin = source.find_first_not_of(" \t", at);
    std::size_t end = std::min(begin, source.size());
    while (end < source.size() &&
           (std::isalnum(static_cast<unsigned char>(source[end])) || source[end] == '_'))
      ++end;
    if (begin != std::string_view::npos && end > begin)
      names.emplace(source.substr(begin, end - begin));
  }
}

std::optional<Fix> FixPlanner::plan(const Finding &finding) {
  if (finding.site.inMacro)
    return std::nullopt;
  if (isPython(finding.where.file.view()))
    return planPython(finding);
  if (finding.fields.count("method"))
    return planKeep(finding);
  if (finding.fields.count("member"))
    return planRegister(finding);
  if (finding.operands.size() == 2)
    return planMove(finding);
  return std::nullopt;
}

TokenRange FixPlanner::tokensOf(Name file) {
  const auto [entry, isNew] = tokens.try_emplace(file);
  std::vector<Token> &all = entry->second;
  if (isNew) {
    all = tokenize(sources.text(file));
    const auto isComment = [](const Token &token) { return token.kind == TokenKind::Comment; };
    all.erase(std::remove_if(all.begin(), all.end(), isComment), all.end());
  }
  return {all.data(), all.data() + all.size()};
}

std::optional<FixPlanner::Piece> FixPlanner::read(const Location &where, const std::string &expected) {
  if (!where.valid() || !mayChange(where.file.str()))
    return std::nullopt;
  const auto bytes = sources.bytes(where);
  if (!bytes)
    return std::nullopt;
  std::optional<Piece> piece = readPart(where.file, bytes->first, bytes->second);
  if (!piece || (!expected.empty() && !saysTheSame(piece->text, expected)))
    return std::nullopt;
  return piece;
}

std::optional<FixPlanner::Piece> FixPlanner::readPart(Name file, std::size_t begin, std::size_t end) {
  Piece piece;
  piece.where = sources.range(file, begin, end);
  piece.begin = begin;
  piece.end = end;
  piece.text = sources.text(file).substr(begin, end - begin);
  piece.file = tokensOf(file);
  const auto startsBefore = [](const Token &token, std::size_t offset) { return token.begin < offset; };
  piece.tokens.first = std::lower_bound(piece.file.begin(), piece.file.end(), begin, startsBefore);
  piece.tokens.last = std::lower_bound(piece.tokens.first, piece.file.end(), end, startsBefore);
  if (piece.tokens.empty() || piece.tokens[0].begin != begin || piece.tokens.last[-1].end != end)
    return std::nullopt; // the file is not the one that was analysed
  for (const Token &token : piece.tokens)
    if (token.text == "#" || isMacro(token.text))
      return std::nullopt;
  return piece;
}

std::optional<FixPlanner::Piece> FixPlanner::partOf(const Piece &piece, TokenRange part) {
  if (part.empty())
    return std::nullopt;
  return readPart(piece.where.file, part[0].begin, part.last[-1].end);
}

bool FixPlanner::isMacro(std::string_view name) const { return macros.find(name) != macros.end(); }

Fix FixPlanner::makeFix(const Piece &piece, std::string text, std::string description) {
  return {std::move(description), {piece.where, piece.begin, piece.end - piece.begin, std::move(text)}};
}

} // namespace devicetidy
