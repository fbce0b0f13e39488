#include "checks/DeviceDiscardedMove.h"

namespace devicetidy {

void DeviceDiscardedMove::run(const Solution &solution, const CheckContext &context,
                              std::vector<Finding> &findings) const {
  for (const DiscardedMove &move : solution.discardedMoves) {
    if (move.changesDtypeOnly && context.option(name(), move.where.file, "WarnOnDtypeOnly") == "false")
      continue;
    Finding finding;
    finding.check = name();
    finding.where = move.where;
    finding.fields = {{"tensor", move.tensor},
                      {"method", move.method},
                      {"lost", move.isOfCopy ? "put into a copy that nothing reads" : "discarded"}};
    finding.fixAt = move.where;
    if (move.isOfCopy)
      finding.fields["copy"] = move.tensor;
    findings.push_back(std::move(finding));
  }
}

} // namespace devicetidy
