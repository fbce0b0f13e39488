#include "checks/DeviceHostAccess.h"

#include "checks/ConflictFinding.h"

namespace devicetidy {

void DeviceHostAccess::run(const Solution &solution, const CheckContext &,
                           std::vector<Finding> &findings) const {
  for (const Conflict &conflict : solution.conflicts)
    if (conflict.kind == ConflictKind::HostAccess) {
      Finding finding = conflictFinding(name(), conflict);
      finding.operands = {conflict.first};
      finding.fields = {{"needed", conflict.second.device}, {"tensor", conflict.first.text}};
      const bool isBlob = conflict.operation == "from_blob";
      const bool isOfHost = conflict.first.device == "cpu";
      const char *advice = !isBlob    ? (isOfHost ? "hostPointer" : "copy")
                           : isOfHost ? "hostBlob"
                                      : "deviceBlob";
      finding.related = {{advice, conflict.where, true}};
      findings.push_back(std::move(finding));
    }
}

} // namespace devicetidy
