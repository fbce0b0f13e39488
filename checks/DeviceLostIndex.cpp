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
    if (!index.isCountOfGpus)
      finding.operands = {index.first};
    finding.fields = {{"lost", index.isCountOfGpus ? "the number of GPUs as the index of one"
                                                   : "'" + index.first.text +
                                                         "', made before the GPU it works on was current"}};
    finding.related = {{index.isCountOfGpus ? "last" : "index", index.where, true}};
    findings.push_back(std::move(finding));
  }
}

} // namespace devicetidy
