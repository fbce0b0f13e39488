#include "checks/DeviceMapDistributed.h"

namespace devicetidy {

void DeviceMapDistributed::run(const Solution &solution, const CheckContext &,
                               std::vector<Finding> &findings) const {
  for (const MapUnderDistributed &map : solution.mapsUnderDistributed) {
    Finding finding;
    finding.check = name();
    finding.level = map.level;
    finding.where = map.where;
    finding.origin = map.origin;
    finding.fields = {{"map", map.map}, {"loader", map.loader}, {"initialiser", map.initialiser}};
    finding.related = {{"initialised", map.initialised}};
    findings.push_back(std::move(finding));
  }
}

} // namespace devicetidy
