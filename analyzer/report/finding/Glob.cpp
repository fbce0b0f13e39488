#include "analyzer/report/finding/Glob.h"

namespace devicetidy {

bool globMatches(std::string_view glob, std::string_view text) {
  std::size_t g = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
    } else if (g < glob.size() && glob[g] == text[t]) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

bool matchesGlobIn(std::string_view globs, std::string_view text) {
  while (!globs.empty()) {
    const std::size_t end = globs.find(';');
    std::string_view glob = globs.substr(0, end);
    globs.remove_prefix(end == std::string_view::npos ? globs.size() : end + 1);
    while (!glob.empty() && glob.front() == ' ')
      glob.remove_prefix(1);
    while (!glob.empty() && glob.back() == ' ')
      glob.remove_suffix(1);
    if (!glob.empty() && globMatches(glob, text))
      return true;
  }
  return false;
}

} // namespace devicetidy
