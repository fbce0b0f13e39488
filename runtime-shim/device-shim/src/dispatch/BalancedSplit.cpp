#include "dispatch/BalancedSplit.h"

#include <algorithm>
#include <numeric>

namespace device_shim::detail {
namespace {

// Fills part after part up to `most`; empty when the parts do not suffice.
std::vector<size_t> fill(const std::vector<int64_t> &weights, const std::vector<int64_t> &limits,
                         int64_t most) {
  std::vector<size_t> parts;
  size_t part = 0;
  int64_t filled = 0;
  for (const auto weight : weights) {
    while (part < limits.size() && filled + weight > std::min(most, limits[part])) {
      ++part;
      filled = 0;
    }
    if (part == limits.size())
      return {};
    filled += weight;
    parts.push_back(part);
  }
  return parts;
}

} // namespace

std::vector<size_t> balancedSplit(const std::vector<int64_t> &weights, const std::vector<int64_t> &limits) {
  // Filling succeeds from some weight on; that one is looked for by bisection.
  int64_t high = std::accumulate(weights.begin(), weights.end(), int64_t(0));
  int64_t low = weights.empty() ? 0 : *std::max_element(weights.begin(), weights.end());
  auto best = fill(weights, limits, high);
  if (best.empty())
    return best;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    auto parts = fill(weights, limits, middle);
    if (parts.empty()) {
      low = middle + 1;
    } else {
      high = middle;
      best = std::move(parts);
    }
  }
  return best;
}

} // namespace device_shim::detail
