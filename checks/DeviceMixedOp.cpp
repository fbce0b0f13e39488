#include "checks/DeviceMixedOp.h"

#include "checks/ConflictFinding.h"

namespace devicetidy {

void DeviceMixedOp::run(const Solution &solution, const CheckContext &,
                        std::vector<Finding> &findings) const {
  for (const Conflict &conflict : solution.conflicts)
    if (conflict.kind == ConflictKind::Operation)
      findings.push_back(conflictFinding(name(), conflict));
}

} // namespace devicetidy
