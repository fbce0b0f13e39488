#include "checks/DeviceRankCollision.h"

namespace devicetidy {

void DeviceRankCollision::run(const Solution &solution, const CheckContext &,
                              std::vector<Finding> &findings) const {
  for (const RankCollision &collision : solution.rankCollisions) {
    Finding finding;
    finding.check = name();
    finding.level = collision.level;
    finding.where = collision.where;
    finding.operation = collision.operation;
    finding.callers = collision.callers;
    finding.fields = {
        {"device", collision.device.empty() ? "the GPU that is current at first" : collision.device}};
    finding.related = {{collision.isEarly ? "current" : "rank", collision.decided, true}};
    findings.push_back(std::move(finding));
  }
}

} // namespace devicetidy
