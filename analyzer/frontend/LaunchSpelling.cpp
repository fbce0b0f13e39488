#include "analyzer/frontend/LaunchSpelling.h"

#include <algorithm>

namespace devicetidy::frontend {

bool joinLaunches(std::string &text) {
  bool changed = false;
  // `<< <` is no other C++; `>> >` may close templates, so only that of a launch counts.
  for (std::size_t at = 0; (at = text.find("<<", at)) != std::string::npos;) {
    const bool isOpen = text.compare(at, 4, "<< <") == 0;
    if (!isOpen && text.compare(at, 3, "<<<") != 0) {
      at += 2;
      continue;
    }
    if (isOpen)
      text.replace(at, 4, "<<< ");
    const std::size_t end = std::min(text.find(';', at), text.size());
    const std::size_t close = text.find(">>", at);
    const bool isSplit = close < end && text.compare(close, 4, ">> >") == 0;
    if (isSplit)
      text.replace(close, 4, ">>> ");
    changed |= isOpen || isSplit;
    at += 3;
  }
  return changed;
}

} // namespace devicetidy::frontend
