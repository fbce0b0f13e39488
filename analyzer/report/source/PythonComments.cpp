#include "analyzer/report/source/PythonComments.h"

#include <algorithm>

namespace devicetidy {
namespace {

// The end of the string literal whose first quote is at `at`.
std::size_t endOfString(std::string_view source, std::size_t at) {
  const char quote = source[at];
  const bool isTriple = source.substr(at, 3) == std::string_view(quote == '"' ? "\"\"\"" : "'''");
  const std::size_t length = isTriple ? 3 : 1;
  for (std::size_t i = at + length; i < source.size(); ++i) {
    if (source[i] == '\\')
      ++i;
    else if (source[i] == '\n' && !isTriple)
      return i; // unterminated
    else if (source.substr(i, length) == source.substr(at, length))
      return i + length;
  }
  return source.size();
}

enum class Part { Comment, String };

// Calls `visit` with each comment and string literal: what it is, its begin and its end.
template <typename Visit> void forEachPart(std::string_view source, Visit visit) {
  for (std::size_t i = 0; i < source.size();) {
    const bool isComment = source[i] == '#', isString = source[i] == '"' || source[i] == '\'';
    const std::size_t end = isComment  ? std::min(source.find('\n', i), source.size())
                            : isString ? endOfString(source, i)
                                       : i + 1;
    if (isComment || isString)
      visit(isComment ? Part::Comment : Part::String, i, end);
    i = end;
  }
}

} // namespace

std::vector<PythonComment> pythonComments(std::string_view source) {
  std::vector<PythonComment> comments;
  forEachPart(source, [&](Part part, std::size_t begin, std::size_t end) {
    if (part == Part::Comment)
      comments.push_back({begin, source.substr(begin, end - begin)});
  });
  return comments;
}

bool isInPythonString(std::string_view source, std::size_t offset) {
  bool isIn = false;
  forEachPart(source, [&](Part part, std::size_t begin, std::size_t end) {
    isIn |= part == Part::String && begin <= offset && offset < end;
  });
  return isIn;
}

} // namespace devicetidy
