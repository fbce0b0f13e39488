#include "process/LinePrefixer.h"

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

namespace {

/// "frame #12: main + 0x55 (0x...)"
bool isBacktraceFrame(std::string_view line) {
  constexpr std::string_view start = "frame #";
  const std::size_t colon = line.find(':');
  return line.substr(0, start.size()) == start && colon != std::string_view::npos && colon > start.size() &&
         line.substr(start.size(), colon - start.size()).find_first_not_of("0123456789") ==
             std::string_view::npos;
}

} // namespace

void LineTail::add(std::string line) {
  if (!isBacktraceFrame(line)) {
    frames = 0;
    complete.push_back(std::move(line));
  } else {
    const bool first = frames++ == 0;
    std::string summary = "(" + std::to_string(frames) + (first ? " frame" : " frames") + " of a backtrace)";
    if (first)
      complete.push_back(std::move(summary));
    else
      complete.back() = std::move(summary);
  }
  if (complete.size() > keep)
    complete.pop_front();
}

void LineTail::feed(std::string_view bytes) {
  constexpr std::size_t longest = 2000; // of a summary's line
  for (char c : bytes) {
    if (c != '\n') {
      if (pending.size() < longest)
        pending.push_back(c);
      continue;
    }
    add(std::move(pending));
    pending.clear();
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
