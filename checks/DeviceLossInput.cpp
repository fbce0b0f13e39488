#include "checks/DeviceLossInput.h"

#include "checks/ConflictFinding.h"

namespace devicetidy {

void DeviceLossInput::run(const Solution &solution, const CheckContext &,
                          std::vector<Finding> &findings) const {
  for (const Conflict &conflict : solution.conflicts)
    if (conflict.kind == ConflictKind::Loss)
      findings.push_back(conflictFinding(name(), conflict));
}

} // namespace devicetidy
