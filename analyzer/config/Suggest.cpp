#include "analyzer/config/Suggest.h"

#include <algorithm>

namespace devicetidy::config {

std::string suggestion(llvm::StringRef misspelt, const std::vector<std::string> &candidates) {
  const std::string *best = nullptr;
  unsigned bestDistance = static_cast<unsigned>(misspelt.size() / 3 + 2);
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
