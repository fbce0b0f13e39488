#include "checks/DeviceLostIndex.h"

namespace devicetidy {

void DeviceLostIndex::run(const Solution &solution, const CheckContext &,
                          std::vector<Finding> &findings) const {
  for (const LostIndex &index : solution.lostIndices) {
    Finding finding;
    finding.check = name();
    finding.level = index.level;
    finding.where = index.where;
    finding.operation = index.operation;
    finding.callers = index.callers;
    if (index.fault == IndexFault::Early) {
      finding.operands = {index.first};
      finding.fields = {{"lost", "'" + index.first.text + "', made before the GPU it works on was current"}};
      finding.related = {{"index", index.where, true}};
    } else if (index.fault == IndexFault::CountOfGpus) {
      finding.fields = {{"lost", "the number of GPUs as the index of one"}};
      finding.related = {{"last", index.where, true}};
    } else {
      finding.fields = {{"lost", "the rank among all machines as the index of a GPU"}};
      finding.related = {{"asked", index.decided}, {"local", index.where, true}};
    }
    findings.push_back(std::move(finding));
  }
}

} // namespace devicetidy
