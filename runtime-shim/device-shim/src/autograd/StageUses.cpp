#include "autograd/StageUses.h"

#include <algorithm>

namespace device_shim::detail {

std::shared_ptr<StageUse> StageUses::add(uint64_t number, size_t position) {
  uses.erase(std::remove_if(uses.begin(), uses.end(), [](const auto &use) { return use.expired(); }),
             uses.end());
  auto use = std::make_shared<StageUse>();
  use->number = number;
  use->position = position;
  uses.push_back(use);
  return use;
}

void StageUses::reach(StageUse &use) {
  use.reached = true;
  oldestReached = std::min(oldestReached, use.number);
}

bool StageUses::allLeftBehind(uint64_t number) const {
  return leftBehind(number) && std::all_of(uses.begin(), uses.end(), [number](const auto &weak) {
           const auto use = weak.lock();
           return !use || (use->reached && use->number > number);
         });
}

} // namespace device_shim::detail
