#include "records/SourceLines.h"

#include "base/Text.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>

namespace devicerun {
namespace {

constexpr int kMostLines = 500; ///< of a function that is searched

using Lines = std::vector<std::string>;

bool isOnlyClosing(const std::string &line) {
  return line.find('}') != std::string::npos && line.find_first_not_of(" \t\r})];,") == std::string::npos;
}

bool isWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The text of a line without what stands in quotes and behind `//`.
std::string codeOf(const std::string &line) {
  std::string code;
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote) {
      if (line[i] == '\\')
        ++i;
      else if (line[i] == quote)
        quote = '\0';
    } else if (line[i] == '"' || (line[i] == '\'' && (i == 0 || !isWordCharacter(line[i - 1])))) {
      quote = line[i];
    } else if (line.compare(i, 2, "//") == 0) {
      break;
    } else {
      code.push_back(line[i]);
    }
  }
  return code;
}

bool begins(const std::string &line, std::string_view word) {
  const std::string_view text = trimmed(line);
  return text.substr(0, word.size()) == word &&
         (text.size() == word.size() || !isWordCharacter(text[word.size()]));
}

/// Is `word` called in the line: does it stand there as a whole word before a parenthesis?
bool calls(const std::string &line, const std::string &word) {
  for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !isWordCharacter(line[at - 1])) && end < line.size() && line[end] == '(')
      return true;
  }
  return false;
}

/// Index of the line with the brace that the first closing one of line `last` closes; -1 when there is none.
int lineOfOpening(const Lines &lines, int last) {
  int depth = 0;
  for (int i = last; i >= std::max(0, last - kMostLines); --i) {
    const std::string code = codeOf(lines[static_cast<std::size_t>(i)]);
    for (std::size_t at = code.size(); at-- > 0;) {
      depth += code[at] == '}' ? 1 : code[at] == '{' ? -1 : 0;
      if (depth == 0 && code[at] == '{')
        return i;
    }
  }
  return -1;
}

/// Index of the last line of the statement that begins in line `first`.
int endOfStatement(const Lines &lines, int first, int last) {
  int depth = 0;
  for (int i = first; i < last; ++i)
    for (char c : codeOf(lines[static_cast<std::size_t>(i)])) {
      depth += c == '{' || c == '(' ? 1 : c == '}' || c == ')' ? -1 : 0;
      if (c == ';' && depth <= 0)
        return i;
    }
  return last;
}

/// The words that programs call an operator by.
std::vector<std::string> wordsFor(const std::string &op) {
  const std::size_t colons = op.rfind("::");
  const std::string name = colons == std::string::npos ? op : op.substr(colons + 2);
  if (name == "to" || name == "_to_copy" || name == "copy_")
    return {"to", "cuda", "cpu", "copy_"};
  return {name};
}

} // namespace

const Lines &SourceLines::linesOf(const std::string &file) {
  const auto [found, isNew] = files.try_emplace(file);
  if (isNew) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);)
      found->second.push_back(line);
  }
  return found->second;
}

std::string SourceLines::text(const std::string &file, int line) {
  const Lines &lines = linesOf(file);
  const auto index = static_cast<std::size_t>(line) - 1;
  return line > 0 && index < lines.size() ? std::string(trimmed(lines[index])) : "";
}

Frame SourceLines::outOfBrace(const Frame &frame) {
  const Lines &lines = linesOf(frame.file);
  const int last = frame.line - 1;
  if (last < 0 || last >= static_cast<int>(lines.size()) ||
      !isOnlyClosing(lines[static_cast<std::size_t>(last)]))
    return frame;
  const int opening = lineOfOpening(lines, last);
  if (opening < 0 || opening == last)
    return frame;
  Frame moved = frame;
  for (int i = last - 1; i > opening; --i)
    if (const std::string &line = lines[static_cast<std::size_t>(i)]; begins(line, "return")) {
      if (codeOf(line).find('{') == std::string::npos)
        break; // what happens at the end of the function is not this
      moved.line = i + 1;
      moved.lastLine = endOfStatement(lines, i, last) + 1;
      return moved;
    }
  // The brace of an initialiser, not that of a block: no statement ends in between.
  for (int i = opening; i < last; ++i)
    if (codeOf(lines[static_cast<std::size_t>(i)]).find(';') != std::string::npos)
      return frame;
  if (const std::string code = codeOf(lines[static_cast<std::size_t>(opening)]);
      code.find_first_not_of(" \t\r{") != std::string::npos) {
    moved.line = opening + 1;
    moved.lastLine = last + 1;
  }
  return moved;
}

Frame SourceLines::lineOfCall(const Frame &frame, const std::string &op) {
  const Lines &lines = linesOf(frame.file);
  const std::vector<std::string> words = wordsFor(op);
  Frame found = frame;
  int count = 0;
  for (int line = frame.line; line <= std::min(frame.lastLine, static_cast<int>(lines.size())); ++line) {
    const std::string code = codeOf(lines[static_cast<std::size_t>(line) - 1]);
    if (std::any_of(words.begin(), words.end(), [&](const std::string &word) { return calls(code, word); })) {
      ++count;
      found.line = found.lastLine = line;
    }
  }
  return count == 1 ? found : frame;
}

} // namespace devicerun
