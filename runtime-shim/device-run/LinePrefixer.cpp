#include "LinePrefixer.h"

namespace devicerun {

void LinePrefixer::emit(std::string_view line, std::string &out) const {
  out.append(prefix).append(line).push_back('\n');
}

void LinePrefixer::feed(std::string_view bytes, std::string &out) {
  if (prefix.empty()) {
    out.append(bytes);
    return;
  }
  for (;;) {
    std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos)
      break;
    pending.append(bytes.substr(0, end));
    emit(pending, out);
    pending.clear();
    bytes.remove_prefix(end + 1);
  }
  pending.append(bytes);
  while (pending.size() >= longestLine) {
    emit(std::string_view(pending).substr(0, longestLine), out);
    pending.erase(0, longestLine);
  }
}

void LinePrefixer::finish(std::string &out) {
  if (pending.empty())
    return;
  emit(pending, out);
  pending.clear();
}

void LineTail::feed(std::string_view bytes) {
  constexpr std::size_t longest = 2000; // of a summary's line
  for (char c : bytes) {
    if (c != '\n') {
      if (pending.size() < longest)
        pending.push_back(c);
      continue;
    }
    complete.push_back(std::move(pending));
    pending.clear();
    if (complete.size() > keep)
      complete.pop_front();
  }
}

std::deque<std::string> LineTail::lines() const {
  std::deque<std::string> all = complete;
  if (!pending.empty())
    all.push_back(pending);
  while (all.size() > keep)
    all.pop_front();
  return all;
}

} // namespace devicerun
