#include "checks/DeviceKernelLaunch.h"

#include "checks/ConflictFinding.h"

namespace devicetidy {

void DeviceKernelLaunch::run(const Solution &solution, const CheckContext &,
                             std::vector<Finding> &findings) const {
  for (const Conflict &conflict : solution.conflicts)
    if (conflict.kind == ConflictKind::Launch) {
      Finding finding = conflictFinding(name(), conflict);
      finding.operands = {conflict.first};
      const bool isExchange = conflict.second.text == "NCCL";
      finding.fields = {{"needed", isExchange ? "GPUs, by NCCL," : conflict.second.device},
                        {"tensor", conflict.first.text}};
      finding.related = {{isExchange ? "exchange" : "move", conflict.where, true}};
      findings.push_back(std::move(finding));
    }
}

} // namespace devicetidy
