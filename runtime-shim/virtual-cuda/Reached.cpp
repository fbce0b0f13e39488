#include "Reached.h"

#include "Json.h"
#include "Records.h"

#include <mutex>
#include <unordered_set>

namespace vcuda {
namespace {

struct Seen {
  std::mutex mutex;
  std::unordered_set<uintptr_t> frames;
};

Seen &seen() {
  static auto *instance = new Seen();
  return *instance;
}

} // namespace

void noteReached(const std::string &op, const CallStack &stack) {
  Seen &known = seen();
  std::lock_guard<std::mutex> lock(known.mutex);
  for (size_t i = 0; i < stack.count; ++i)
    if (known.frames.insert(stack.frames[i]).second)
      reachedFile()->write(
          JsonLine().text("kind", "reached").text("frame", frameText(stack.frames[i])).text("op", op).take());
}

} // namespace vcuda
