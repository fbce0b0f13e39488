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

} // namespace

std::vector<PythonComment> pythonComments(std::string_view source) {
  std::vector<PythonComment> comments;
  for (std::size_t i = 0; i < source.size();) {
    if (source[i] == '#') {
      const std::size_t end = std::min(source.find('\n', i), source.size());
      comments.push_back({i, source.substr(i, end - i)});
      i = end;
    } else {
      i = source[i] == '"' || source[i] == '\'' ? endOfString(source, i) : i + 1;
    }
  }
  return comments;
}

} // namespace devicetidy
