#include "analyzer/config/Suggest.h"

#include <algorithm>

namespace devicetidy::config {

std::string suggestion(llvm::StringRef misspelt, const std::vector<std::string> &candidates) {
  const std::string *best = nullptr;
  // Where more than half of the letters are others, it is another word.
  const std::size_t letters = misspelt.ltrim('-').size();
  unsigned bestDistance = static_cast<unsigned>(std::min(misspelt.size() / 3 + 2, letters / 2 + 1));
  for (const std::string &candidate : candidates) {
    // What is cut short is nearer than its length says: "mixed-op", "header".
    const bool isPart = misspelt.size() >= 4 && llvm::StringRef(candidate).contains(misspelt);
    const unsigned distance = isPart ? 1 : misspelt.edit_distance(candidate);
    if (distance < bestDistance) {
      best = &candidate;
      bestDistance = distance;
    }
  }
  return best ? "; did you mean '" + *best + "'?" : std::string();
}

} // namespace devicetidy::config
