#include "checks/DeviceLoadPlacement.h"

#include "checks/ConflictFinding.h"

namespace devicetidy {

void DeviceLoadPlacement::run(const Solution &solution, const CheckContext &,
                              std::vector<Finding> &findings) const {
  for (const Conflict &conflict : solution.conflicts)
    if (conflict.kind == ConflictKind::Load)
      findings.push_back(conflictFinding(name(), conflict));
}

} // namespace devicetidy
