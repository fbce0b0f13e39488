//===- UserModels.cpp - reads files of rows ---===//
#include "analyzer/models/UserModels.h"

#include "analyzer/models/Models.h"

#include <algorithm>

namespace devicetidy::models {
namespace {

thread_local const UserModels *current = nullptr;

constexpr std::string_view typeWord = "type ", separator = ": ", blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// `#` begins a comment, unless it stands in a text.
std::string_view withoutComment(std::string_view line) {
  bool isText = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    isText ^= line[i] == '\'';
    if (line[i] == '#' && !isText)
      return line.substr(0, i);
  }
  return line;
}

void checkWords(const Effect &effect, const WordCheck &check) {
  if (const std::string wrong = check(effect); !wrong.empty())
    throw RowError(wrong, effect.offset);
  for (const Effect &arg : effect.args)
    checkWords(arg, check);
}

// Reads a line that says something. Throws RowError with an offset into `line`.
void readLine(std::string_view line, const WordCheck &check, UserModels &models) {
  const std::size_t colon = line.find(separator);
  if (colon == std::string_view::npos)
    throw RowError("expected 'NAME: EFFECTS' or 'type CLASS: KIND'", 0);
  const std::string_view name = trimmed(line.substr(0, colon));
  const std::size_t start = line.find_first_not_of(blanks, colon + separator.size());
  if (start == std::string_view::npos)
    throw RowError("expected an effect", colon + 1);
  const std::string_view said = trimmed(line.substr(start));
  if (name.substr(0, typeWord.size()) == typeWord) {
    const std::vector<std::string_view> kinds = typeKinds();
    if (!std::binary_search(kinds.begin(), kinds.end(), said)) {
      std::string known;
      for (std::string_view kind : kinds)
        known += (known.empty() ? "" : ", ") + std::string(kind);
      throw RowError("'" + std::string(said) + "' is no kind of class; the kinds are " + known, start);
    }
    models.kinds[std::string(trimmed(name.substr(typeWord.size())))] = said;
    return;
  }
  try {
    Row row = parseRow(name, said);
    for (const Effect &effect : row.effects)
      checkWords(effect, check);
    models.rows[row.name].push_back(std::move(row));
  } catch (const RowError &wrong) {
    throw RowError(wrong.what(), start + wrong.offset);
  }
}

} // namespace

void UserModels::add(const UserModels &other) {
  for (const auto &[name, added] : other.rows)
    rows[name] = added;
  for (const auto &[name, kind] : other.kinds)
    kinds[name] = kind;
  units.insert(units.end(), other.units.begin(), other.units.end());
}

bool readUserModels(const std::string &file, std::string_view text, const WordCheck &check,
                    UserModels &models, std::string &error) {
  unsigned number = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = withoutComment(text.substr(start, end - start));
    start = end + 1;
    ++number;
    if (trimmed(line).empty())
      continue;
    try {
      readLine(line, check, models);
    } catch (const RowError &wrong) {
      error = file + ":" + std::to_string(number) + ":" + std::to_string(wrong.offset + 1) +
              ": error: " + wrong.what();
      return false;
    }
  }
  return true;
}

UsingModels::UsingModels(const UserModels *models) : before(current) { current = models; }

UsingModels::~UsingModels() { current = before; }

const UserModels *userModels() { return current; }

} // namespace devicetidy::models
