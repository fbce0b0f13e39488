#include "checks/DeviceLoadPlacement.h"

#include "checks/ConflictFinding.h"

namespace devicetidy {

void DeviceLoadPlacement::run(const Solution &solution, const CheckContext &,
                              std::vector<Finding> &findings) const {
  for (const Conflict &conflict : solution.conflicts)
    if (conflict.kind == ConflictKind::Load) {
      Finding finding = conflictFinding(name(), conflict);
      finding.fields = {{"says", "{gets} {first} on {firstDevice} and {second} on the device of the saved "
                                 "file: the load names no device"}};
      findings.push_back(std::move(finding));
    }
  for (const UnmappedLoad &load : solution.unmappedLoads) {
    Finding finding;
    finding.check = name();
    finding.level = load.level;
    finding.where = load.where;
    finding.operation = load.operation;
    finding.callers = load.callers;
    finding.fixAt = load.where;
    finding.fields = {{"parameter", load.parameter},
                      {"says", load.parameter.empty()
                                   ? "puts this on the device that it was saved from, which need not be there"
                                   : "puts this on the device that it was saved from: '{parameter}' is not "
                                     "passed on"}};
    finding.related = {{load.parameter.empty() ? "moved" : "parameter", load.declared}};
    findings.push_back(std::move(finding));
  }
}

} // namespace devicetidy
