//===- FixPython.cpp - changes of Python code ---===//
#include "analyzer/report/fix/FixPlanner.h"

#include "analyzer/facts/Language.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace devicetidy {
namespace {

bool isNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

/// `x`, `self.x`: it may be written again without running anything.
bool isPlace(const std::string &text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), isNameCharacter);
}

/// May `.to(..)` follow it as it is?
bool isPrimary(const std::string &text) {
  int depth = 0;
  for (char c : text) {
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (depth == 0 && !isNameCharacter(c) && c != ')' && c != ']' && c != '}' && c != '"')
      return false;
  }
  return !text.empty();
}

} // namespace

// The text must be what was analysed, whole and on one line.
std::optional<Fix> FixPlanner::fixPython(const Location &where, const std::string &text, std::string change,
                                         std::string description) {
  constexpr std::size_t longest = 60; // facts keep no more of it
  if (!where.valid() || text.size() >= longest || isNotebook(where.file.view()) ||
      !mayChange(where.file.str()) || sources.text(where) != text)
    return std::nullopt;
  const auto bytes = sources.bytes(where);
  if (!bytes)
    return std::nullopt;
  return Fix{std::move(description), {where, bytes->first, bytes->second - bytes->first, std::move(change)}};
}

std::optional<Fix> FixPlanner::planPython(const Finding &finding) {
  if (finding.fields.count("method")) { // x.to(device)
    const std::string &tensor = finding.fields.at("tensor");
    const std::string call(sources.text(finding.where));
    if (!isPlace(tensor))
      return std::nullopt;
    return fixPython(finding.where, call, fmt::format("{} = {}", tensor, call),
                     fmt::format("assign the result to '{}'", tensor));
  }
  if (finding.operands.size() != 2 || finding.fields.count("member"))
    return std::nullopt;
  const PlacedOperand &kept = finding.operands[0], &left = finding.operands[1];
  const auto isWritten = [](const PlacedOperand &each) { return each.isCode && each.where.valid(); };
  if (!isWritten(kept) || !isWritten(left) || !left.module.empty() || !isPlace(kept.text) ||
      !isPrimary(left.text))
    return std::nullopt;
  return fixPython(left.where, left.text, fmt::format("{}.to({}.device)", left.text, kept.text),
                   fmt::format("move '{}' to the device of '{}'", left.text, kept.text));
}

} // namespace devicetidy
