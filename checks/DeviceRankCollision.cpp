#include "checks/DeviceRankCollision.h"

namespace devicetidy {
namespace {

// The key of what is said at the place that decided it.
const char *noteOf(RankFault fault) {
  switch (fault) {
  case RankFault::Early:
    return "current";
  case RankFault::Unset:
    return "joined";
  case RankFault::Loaded:
    return "loads";
  default:
    return "rank";
  }
}

} // namespace

void DeviceRankCollision::run(const Solution &solution, const CheckContext &,
                              std::vector<Finding> &findings) const {
  for (const RankCollision &collision : solution.rankCollisions) {
    Finding finding;
    finding.check = name();
    finding.level = collision.level;
    finding.where = collision.where;
    finding.operation = collision.operation;
    finding.callers = collision.callers;
    const char *says =
        collision.fault == RankFault::Unset
            ? "joins ranks, and nothing makes the GPU of each current: what names no GPU is on "
              "cuda:0 in every rank of the machine"
        : collision.fault == RankFault::Loaded
            ? "puts this on the GPU that it was saved from, in every rank of the machine"
            : "puts this on {device} in every rank of the machine";
    finding.fields = {
        {"says", says},
        {"device", collision.device.empty() ? "the GPU that is current at first" : collision.device}};
    finding.related = {{noteOf(collision.fault), collision.decided, true}};
    findings.push_back(std::move(finding));
  }
}

} // namespace devicetidy
