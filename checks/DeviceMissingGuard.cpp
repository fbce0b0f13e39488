#include "checks/DeviceMissingGuard.h"

namespace devicetidy {

void DeviceMissingGuard::run(const Solution &solution, const CheckContext &,
                             std::vector<Finding> &findings) const {
  for (const MissingGuard &guard : solution.missingGuards) {
    Finding finding;
    finding.check = name();
    finding.level = guard.level;
    finding.where = guard.where;
    finding.operation = guard.work;
    finding.operands = {guard.memory};
    finding.callers = guard.callers;
    finding.fields = {{"current", guard.current.empty() ? "the current GPU" : guard.current},
                      {"tensor", guard.parameter}};
    for (const Location &call : guard.through)
      finding.related.push_back({"through", call});
    if (guard.worksAt != guard.where)
      finding.related.push_back({"work", guard.worksAt});
    finding.related.push_back({guard.parameter.empty() ? "anyGuard" : "guard", guard.where, true});
    findings.push_back(std::move(finding));
  }
}

} // namespace devicetidy
