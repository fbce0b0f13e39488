#include "comm/UnderWay.h"

namespace device_shim::detail {

void UnderWay::add(const std::string &operation, int64_t number, std::function<bool()> isOver) {
  std::lock_guard<std::mutex> lock(mutex);
  all.push_back({{operation, number, Clock::now()}, std::move(isOver)});
}

std::optional<UnderWay::Range> UnderWay::look() {
  std::lock_guard<std::mutex> lock(mutex);
  while (!all.empty() && all.front().isOver())
    all.pop_front();
  if (all.empty())
    return std::nullopt;
  return Range{all.front().entry, all.back().entry};
}

} // namespace device_shim::detail
